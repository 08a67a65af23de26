"""A host that resumes its session when its plugin is killed, over examples/python/host.py. It meets some
errors, kills its plugin while it holds a lock, resumes the session in another plugin, and ends that one.

    PYTHONPATH=DIRECTORY python3 resume.py PLUGIN HOST:PORT PATH

DIRECTORY has host.py, and the modules that it imports.
"""

import sys
import threading
import time
import uuid

import grpc
import host
from zkrecipes.v1 import config_pb2, contender_pb2, contender_pb2_grpc, grant_pb2, plugin_pb2, session_pb2, session_pb2_grpc

CUT_OFF = grpc.StatusCode.UNAVAILABLE.name


class Session(host.Session):
    """A session that another plugin can resume."""

    def __init__(self, plugin, start, before=None):
        super().__init__(plugin, start)
        self.start, self.ticket = start, self.opened.ticket or before and before.ticket
        self.service = session_pb2_grpc.SessionServiceStub(plugin.channel)
        if before:  # the deadline does not move until the next echo
            self.holds, self.timeout = before.holds, min(self.timeout, before.timeout)
            self.contact = self.known = before.heard()

    def heard(self):
        return self.known if self.holds else self.contact

    def remaining(self):
        """As left, also while no plugin serves the session."""
        return self.heard() + self.timeout - time.monotonic()

    def was_cut_off(self):
        """Reports whether the stream has ended as it does when the plugin is killed."""
        return self.reason == CUT_OFF

    def lose(self, reason):
        with self.changed:
            self.reason = self.reason or reason
            if not self.was_cut_off():
                return super().lose(reason)
            self.lost.set()  # and the holds remain
            self.changed.notify_all()

    def resume(self, plugin):
        """Resumes the session in another plugin. This one's plugin was killed and waited for."""
        self.lost.wait(host.TIMEOUT)
        if not self.was_cut_off() or self.remaining() <= 0:
            raise RuntimeError("the session is lost: " + self.reason)
        resume = session_pb2.Resume(ticket=self.ticket, session=self.name)
        resume.known_contact_age.FromNanoseconds(int((time.monotonic() - self.heard()) * 1e9))
        return Session(plugin, session_pb2.Start(config=self.start.config, resume=resume), self)


def refused(what, f):
    try:
        f()
        print(what, "was not refused")
    except grpc.RpcError as err:
        print(what, err.code().name, next(iter(host.reasons(err)), ""))


def main(executable, server, path):
    plugin = host.Plugin(executable)
    print("capabilities", *plugin.control.Info(plugin_pb2.InfoRequest()).capabilities)
    start = session_pb2.Start(config=config_pb2.Config(servers=[server]))
    session, other = Session(plugin, start), Session(plugin, start)

    def contenders(session, path):
        request = contender_pb2.ContendersRequest(session=session.name, path=path)
        return contender_pb2_grpc.ContenderServiceStub(plugin.channel).Contenders(request).contenders

    lock = host.Hold(session, path, lock={}, data=b"python")
    print("token", lock.answer.grant.token)
    refused("try", lambda: host.Hold(other, path, lock={}, **{"try": True}))
    refused("path", lambda: host.Hold(session, "no-slash", lock={}))
    print("contenders", *[f"{c.kind} {c.data.decode()} {c.holds}" for c in contenders(other, path)])

    # A write under two locks checks both in one transaction.
    second = host.Hold(session, path + "-second", lock={})
    write = [{"kind": grant_pb2.OP_KIND_HELD, "request_id": second.request},
             {"kind": grant_pb2.OP_KIND_CREATE, "path": path + "-data"}]
    lock.call("Write", ops=write)
    second.release()
    refused("write", lambda: lock.call("Write", ops=write))
    lock.release()
    print("released")

    other.outgoing.put(None)  # half-closes the stream
    other.incoming.code()  # waits for the end of the stream: then the session is closed
    print("half-closed", other.reason)

    # The plugin dies with a lock held, and another one resumes the session and the lock.
    kept = host.Hold(session, path + "-kept", lock={})
    waiting = threading.Thread(target=refused, args=("cut off", lambda: host.Hold(session, path + "-kept", lock={})))
    waiting.start()
    while len(contenders(session, path + "-kept")) < 2:
        pass
    plugin.child.kill()
    plugin.child.wait(host.TIMEOUT)
    waiting.join(host.TIMEOUT)
    plugin = host.Plugin(executable)
    session = kept.session = session.resume(plugin)
    refused("before DropRest", lambda: session.grants.Acquire(grant_pb2.AcquireRequest(
        lock={}, session=session.name, request_id=str(uuid.uuid4()), path=path)))
    again = kept.call("Acquire", lock={}, path=path + "-kept", resumed=kept.answer.grant).grant
    session.service.DropRest(session_pb2.DropRestRequest(session=session.name))
    print("resumed", again.token == kept.answer.grant.token, *[c.holds for c in contenders(session, path + "-kept")])
    kept.release()

    plugin.close()
    session.lost.wait(host.TIMEOUT)
    print("shut down", session.reason)
    print("exit code", plugin.child.returncode)


if __name__ == "__main__":
    main(*sys.argv[1:])
