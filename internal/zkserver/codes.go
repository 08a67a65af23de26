package zkserver

import "strconv"

// Op is the type of a request, as in the request header.
type Op int32

// The request types that the server answers.
const (
	OpCreate          Op = 1
	OpDelete          Op = 2
	OpExists          Op = 3
	OpGetData         Op = 4
	OpSetData         Op = 5
	OpGetACL          Op = 6
	OpSetACL          Op = 7
	OpGetChildren     Op = 8
	OpSync            Op = 9
	OpPing            Op = 11
	OpGetChildren2    Op = 12
	OpCheck           Op = 13
	OpMulti           Op = 14
	OpCreate2         Op = 15
	OpCheckWatches    Op = 17
	OpRemoveWatches   Op = 18
	OpCreateContainer Op = 19
	OpCreateTTL       Op = 21
	OpMultiRead       Op = 22
	OpAuth            Op = 100
	OpSetWatches      Op = 101
	OpGetEphemerals   Op = 103
	OpCountChildren   Op = 104
	OpSetWatches2     Op = 105
	OpAddWatch        Op = 106
	OpWhoAmI          Op = 107
	OpCloseSession    Op = -11

	opError Op = -1 // the type of a failed result inside a multi reply
)

var opNames = map[Op]string{
	OpCreate: "create", OpDelete: "delete", OpExists: "exists", OpGetData: "getData",
	OpSetData: "setData", OpGetACL: "getACL", OpSetACL: "setACL", OpGetChildren: "getChildren",
	OpSync: "sync", OpPing: "ping", OpGetChildren2: "getChildren2", OpCheck: "check",
	OpMulti: "multi", OpCreate2: "create2", OpCheckWatches: "checkWatches",
	OpRemoveWatches: "removeWatches", OpCreateContainer: "createContainer",
	OpCreateTTL: "createTTL", OpMultiRead: "multiRead", OpAuth: "auth",
	OpSetWatches: "setWatches", OpGetEphemerals: "getEphemerals",
	OpCountChildren: "getAllChildrenNumber", OpSetWatches2: "setWatches2",
	OpAddWatch: "addWatch", OpWhoAmI: "whoAmI", OpCloseSession: "closeSession",
}

// String returns ZooKeeper's name of the request type, or its number.
func (o Op) String() string {
	if name, ok := opNames[o]; ok {
		return name
	}
	return "op(" + strconv.Itoa(int(o)) + ")"
}

// writes reports whether the request uses a transaction id.
func (o Op) writes() bool {
	switch o {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpSetData,
		OpSetACL, OpCheck, OpMulti, OpCloseSession:
		return true
	}
	return false
}

// code is the err field of a reply.
type code int32

const (
	codeOK                   code = 0
	codeRuntimeInconsistency code = -2
	codeMarshalling          code = -5
	codeUnimplemented        code = -6
	codeBadArguments         code = -8
	codeNoNode               code = -101
	codeNoAuth               code = -102
	codeBadVersion           code = -103
	codeNoChildrenForEph     code = -108
	codeNodeExists           code = -110
	codeNotEmpty             code = -111
	codeInvalidACL           code = -114
	codeAuthFailed           code = -115
	codeNoWatcher            code = -121
	codeThrottledOp          code = -127
)
