"""A turn at most once a period without Go: see "Once a period" in plugin/proto/PROTOCOL.md. For each
line of input it takes the lock of PATH, and asks for a turn. If one is due, it prints "due", waits
for a line of input in place of its work, counts the turn, and prints when that began.

    PYTHONPATH=DIRECTORY python3 once.py PLUGIN HOST:PORT PATH SECONDS

DIRECTORY is as for resume.py.
"""

import sys

import grpc
from host import Hold, Plugin, Session, reasons
from zkrecipes.v1 import config_pb2, configuration_pb2, configuration_pb2_grpc, grant_pb2, session_pb2

EXECUTABLE, SERVER, PATH = sys.argv[1:4]
KEY, PERIOD = "once", int(sys.argv[4]) * 1000  # in milliseconds, as all times here


class Turns:
    def __init__(self, plugin, session):
        self.session = session
        self.configurations = configuration_pb2_grpc.ConfigurationServiceStub(plugin.channel)

    def read(self):
        """Returns the record. Its revision is 0 if it does not exist."""
        try:
            request = configuration_pb2.GetKeyRequest(session=self.session.name, path=PATH, key=KEY)
            return self.configurations.GetKey(request).entry
        except grpc.RpcError as err:
            if "NO_NODE" not in reasons(err):
                raise
            return configuration_pb2.Entry()

    def write(self, read, value):
        """Writes the record under the lock, if it is as it was read. Reports whether it was. If
        not, or if the outcome is unknown, the caller reads it again."""
        op = {"kind": grant_pb2.OP_KIND_CREATE, "path": PATH + "/" + KEY, "data": value}
        if read.revision:
            op.update(kind=grant_pb2.OP_KIND_SET, version=read.version)
        try:
            self.hold.call("Write", ops=[op])
        except grpc.RpcError as err:
            reason = next(iter(reasons(err)), "")
            if reason in ("UNKNOWN_OUTCOME", "BAD_VERSION", "NODE_EXISTS") or reason == "NO_NODE" and read.revision:
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
        self.hold = Hold(self.session, PATH, lock={})
        if self.is_due():
            print("due", flush=True)
            sys.stdin.readline()  # the work
            self.count()
            print("counted", self.began, flush=True)
        else:
            print("not due", flush=True)
        self.hold.release()


plugin = Plugin(EXECUTABLE)
turns = Turns(plugin, Session(plugin, session_pb2.Start(config=config_pb2.Config(servers=[SERVER]))))
while sys.stdin.readline():
    turns.take()
plugin.close()
print("exit code", plugin.child.returncode)
