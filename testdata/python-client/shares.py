"""A member of Shares without Go: see "Shares" in plugin/proto/PROTOCOL.md. It prints each COUNT
when it owns so many of the N numbers, and then waits for a line of input. In the end it leaves.

    PYTHONPATH=DIRECTORY python3 shares.py PLUGIN HOST:PORT PATH N COUNT...

DIRECTORY is as for resume.py.
"""

import json
import sys
import threading

import grpc

from host import Hold, Plugin, Session, reasons
from zkrecipes.v1 import config_pb2, configuration_pb2, configuration_pb2_grpc, names_pb2, names_pb2_grpc, session_pb2

EXECUTABLE, SERVER, PATH = sys.argv[1:4]
N, *COUNTS = (int(argument) for argument in sys.argv[4:])


class Member:
    def __init__(self, plugin, session):
        self.session = session
        self.configurations = configuration_pb2_grpc.ConfigurationServiceStub(plugin.channel)
        self.names = names_pb2_grpc.NamesServiceStub(plugin.channel)
        self.changed = threading.Condition()
        self.wanted = {}  # by number, the thread that keeps it
        self.owned = set()
        self.left = False
        self.refused = False
        self.membership = Hold(session, PATH + "/members", group={"ends_with_host": True}, data=b"n=%d python" % N)
        self.when_lost(self.membership, self.give_up)

    def when_lost(self, hold, f=lambda: None):
        """Calls f, and wakes who waits for a change, when the grant is lost."""
        def wait():
            hold.lost.wait()
            with self.changed:
                f()
                self.changed.notify_all()
        threading.Thread(target=wait, daemon=True).start()

    def give_up(self):
        self.left = True
        self.wanted.clear()

    def release(self, hold):
        try:
            hold.release()
        except grpc.RpcError as err:
            if not {"NOT_HELD", "REMOVED"}.intersection(reasons(err)):
                raise

    def follow(self):
        """Takes and gives up numbers as the assignment says."""
        named, grant = False, self.membership.answer.grant
        watch = configuration_pb2.WatchKeyRequest(session=self.session.name, path=PATH, key="")
        for answer in self.configurations.WatchKey(watch):
            try:
                assignment = json.loads(answer.entry.value)
            except ValueError:
                continue  # the assigner has not written yet
            numbers = assignment["members"].get(str(grant.token))
            named = named or numbers is not None
            with self.changed:
                if self.left:
                    return
                name = grant.znode.rsplit("/", 1)[1]
                self.refused = grant.token in assignment.get("refused", []) or name in assignment.get("ignored", [])
                if named:  # otherwise it is older than this member
                    self.want(numbers or [])
                self.changed.notify_all()

    def want(self, numbers):
        self.wanted = {number: self.wanted.get(number) for number in numbers}
        for number, keeper in self.wanted.items():
            if keeper is None:
                self.wanted[number] = threading.Thread(target=self.keep, args=(number,), daemon=True)
                self.wanted[number].start()

    def is_wanted(self, number):
        """Reports whether the calling thread keeps the number."""
        return self.wanted.get(number) is threading.current_thread()

    def keep(self, number):
        """Takes a number when no member owns it, and owns it while it is wanted."""
        numbers, name = PATH + "/numbers", str(number)
        while True:
            with self.changed:
                if not self.is_wanted(number):
                    return
            try:
                hold = Hold(self.session, numbers, names={"name": name}, data=b"python")
            except grpc.RpcError as err:
                if "NODE_EXISTS" not in reasons(err):
                    raise
                for answer in self.names.WatchName(names_pb2.WatchNameRequest(session=self.session.name, path=numbers, name=name)):
                    if not answer.record.znode:
                        break
                continue
            except RuntimeError:
                continue  # another client has deleted the new znode
            self.when_lost(hold)
            with self.changed:
                self.owned.add(number)  # from now on a worker works for it, with the token
                self.changed.notify_all()
                self.changed.wait_for(lambda: hold.lost.is_set() or not self.is_wanted(number))
            self.release(hold)  # when the worker has finished
            with self.changed:
                self.owned.remove(number)
                self.changed.notify_all()

    def owns(self, count):
        """Waits until it owns so many numbers, or is refused."""
        with self.changed:
            self.changed.wait_for(lambda: self.refused or len(self.owned) == count)
            print("refused" if self.refused else f"owns {count}", flush=True)

    def leave(self):
        with self.changed:
            self.give_up()
            self.changed.notify_all()
        self.release(self.membership)
        if not self.refused:
            self.owns(0)


plugin = Plugin(EXECUTABLE)
member = Member(plugin, Session(plugin, session_pb2.Start(config=config_pb2.Config(servers=[SERVER]))))
threading.Thread(target=member.follow, daemon=True).start()
for count in COUNTS:
    member.owns(count)
    sys.stdin.readline()
member.leave()
plugin.close()
print("exit code", plugin.child.returncode)
