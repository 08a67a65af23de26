"""A turn at most once a period without Go: see "Once a period" in plugin/proto/PROTOCOL.md. For each
line of input it takes the lock of PATH, and asks for a turn. If one is due, it prints "due", waits
for a line of input in place of its work, counts the turn, and prints when that began.

    python3 once.py PLUGIN DIRECTORY HOST:PORT PATH SECONDS

The rest is as for client.py, which it uses.
"""

import sys
import uuid

import grpc

from client import PATH, Service, reason, run_with_session
from zkrecipes.v1 import configuration_pb2, grant_pb2

KEY, PERIOD = "once", int(sys.argv[5]) * 1000  # in milliseconds, as all times here


class Turns:
    def __init__(self, channel, session):
        self.session = session.handle
        self.grants = Service(channel, grant_pb2, "GrantService")
        self.configurations = Service(channel, configuration_pb2, "ConfigurationService")

    def read(self):
        """Returns the record. Its revision is 0 if it does not exist."""
        try:
            return self.configurations.call("GetKey", session=self.session, path=PATH, key=KEY).entry
        except grpc.RpcError as err:
            if reason(err) != "NO_NODE":
                raise
            return configuration_pb2.Entry()

    def write(self, read, value):
        """Writes the record under the lock, if it is as it was read. Reports whether it was. If
        not, or if the outcome is unknown, the caller reads it again."""
        op = {"kind": grant_pb2.OP_KIND_CREATE, "path": PATH + "/" + KEY, "data": value}
        if read.revision:
            op.update(kind=grant_pb2.OP_KIND_SET, version=read.version)
        try:
            self.grants.call("Write", session=self.session, request_id=self.hold, ops=[op])
        except grpc.RpcError as err:
            if reason(err) in ("UNKNOWN_OUTCOME", "BAD_VERSION", "NODE_EXISTS") or reason(err) == "NO_NODE" and read.revision:
                return False
            raise
        return True

    def is_due(self):
        """Reports whether the period has passed since the last turn that counts."""
        written = False
        while True:
            record = self.read()
            if record.value and not (record.value.isdigit() and int(record.value) > 0):
                raise ValueError(f"the record is {record.value}, which is not a time")
            if written and record.revision:
                break
            written = self.write(record, record.value)
        # The value and the time of the write are from one read.
        self.record, self.began = record, record.modified.ToMilliseconds()
        passed = self.began - int(record.value or 0)
        if passed < 0:  # the leader's clock was set back: the period starts again
            self.count()
        return passed >= PERIOD or not record.value

    def count(self):
        """Records the turn. It can be called again."""
        record, value = self.record, b"%d" % self.began
        while record.value != value and not self.write(record, value):
            record = self.read()

    def take(self):
        self.hold = str(uuid.uuid4())
        self.grants.call("Acquire", lock={}, session=self.session, request_id=self.hold, path=PATH)
        if self.is_due():
            print("due", flush=True)
            sys.stdin.readline()  # the work
            self.count()
            print("counted", self.began, flush=True)
        else:
            print("not due", flush=True)
        self.grants.call("Release", session=self.session, request_id=self.hold)


def work(channel, session):
    turns = Turns(channel, session)
    while sys.stdin.readline():
        turns.take()


run_with_session(work)
