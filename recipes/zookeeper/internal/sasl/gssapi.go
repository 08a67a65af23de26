package sasl

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/chksumtype"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// exchange is an exchange of GSSAPI: the ticket, the security layers that the server offers, and
// the choice of none.
//
// It asks for no AP-REP, as Java's client does. The server proves who it is by the checksum of its
// offer. Only the owner of the ticket's service can compute it, because the key is new for
// each connection and is encrypted to that service.
type exchange struct {
	first  []byte
	key    types.EncryptionKey
	number int64 // of the next token
	chosen bool
}

// aesOnly are the types of keys whose tokens are those of RFC 4121. The others are deprecated.
var aesOnly = []int32{etypeID.AES128_CTS_HMAC_SHA1_96, etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA256_128, etypeID.AES256_CTS_HMAC_SHA384_192}

// kerberos5 is the object identifier of the mechanism, encoded, and the number of an AP-REQ.
var kerberos5 = []byte("\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02" + "\x01\x00")

// newGSSAPI returns the exchange with a ticket, unless there was an error.
func newGSSAPI(t ticket, err error) (Exchange, error) {
	if err != nil {
		return nil, err
	}
	if !slices.Contains(aesOnly, t.key.KeyType) {
		return nil, refusal{fmt.Errorf("the KDC gave a key of type %d; only AES is supported", t.key.KeyType)}
	}
	sender, err := types.NewAuthenticator(t.realm, t.user)
	if err == nil {
		err = sender.GenerateSeqNumberAndSubKey(t.key.KeyType, len(t.key.KeyValue))
	}
	if err != nil {
		return nil, err
	}
	sender.Cksum = types.Checksum{CksumType: chksumtype.GSSAPI, Checksum: make([]byte, 24)} // RFC 4121, section 4.1.1
	sender.Cksum.Checksum[0], sender.Cksum.Checksum[20] = 16, gssapi.ContextFlagInteg
	var encoded []byte
	request, err := messages.NewAPReq(t.Ticket, t.key, sender)
	if err == nil {
		encoded, err = request.Marshal()
	}
	if err != nil {
		return nil, err
	}
	return &exchange{first: asn1tools.AddASNAppTag(slices.Concat(kerberos5, encoded), 0), key: sender.SubKey, number: sender.SeqNumber}, nil
}

func (x *exchange) Next(token []byte) ([]byte, error) {
	switch first := x.first; {
	case first != nil:
		x.first = nil
		return first, nil
	case x.chosen:
		return nil, nil
	case len(token) == 0:
		return nil, ErrNotOffered
	}
	const sealed, acceptorSubkey, noLayer = 2, 4, 1
	var offer gssapi.WrapToken
	if err := offer.Unmarshal(token, true); err != nil || offer.Flags&(sealed|acceptorSubkey) != 0 {
		return nil, errors.New("the server's answer is not one of GSSAPI; it has another mechanism")
	}
	if ok, _ := offer.Verify(x.key, keyusage.GSSAPI_ACCEPTOR_SEAL); !ok {
		return nil, errors.New("the server did not prove that it is the ticket's service")
	}
	if len(offer.Payload) != 4 || offer.Payload[0]&noLayer == 0 {
		return nil, errors.New("the server demands a security layer, which ZooKeeper does not have")
	}
	choice := gssapi.WrapToken{EC: offer.EC, SndSeqNum: uint64(x.number), Payload: []byte{noLayer, 0, 0, 0}}
	if err := choice.SetCheckSum(x.key, keyusage.GSSAPI_INITIATOR_SEAL); err != nil {
		return nil, err
	}
	x.chosen = true
	return choice.Marshal()
}
