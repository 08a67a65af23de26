"""A host for zkbench verify -host, which gives it steps, one a line: see "Verification of a host" in
plugin/proto/PROTOCOL.md. When its plugin is killed, it resumes the session and the locks.

    PYTHONPATH=DIRECTORY zkbench verify -host python3 verify.py

DIRECTORY is as for resume.py, which it uses.
"""

import contextlib
import os
import subprocess
import sys
import threading

import grpc
from google.protobuf import duration_pb2
from host import Hold, Plugin, reasons
from resume import Session
from zkrecipes.v1 import config_pb2, grant_pb2, session_pb2


class Refused(Exception):
    """The reasons for which a step has failed."""


class Lock(Hold):
    """A lock that remains held when another plugin resumes the session."""

    def __init__(self, host, path, timeout, **fields):
        self.host, self.path = host, path
        super().__init__(host.session, path, timeout, lock={}, **fields)

    def acquire(self, timeout, **fields):
        def attempt():
            self.session = self.host.session
            try:
                super(Lock, self).acquire(timeout, **fields)
            except RuntimeError:  # it was granted, and is lost
                if not self.session.lost.is_set():
                    raise Refused("NOT_HELD")
                return False
            return True
        self.host.repeat(attempt)


class Host:
    def __init__(self):
        self.plugin = self.session = None
        self.held = {}  # by the name in the steps
        self.changed = threading.Condition()
        self.generation = 0  # counts the plugins that have served the session
        self.lost = False  # no other plugin will serve it

    def launch(self):
        self.plugin = Plugin(os.environ["ZKRECIPES_VERIFY_PLUGIN"])
        return self.plugin

    def use(self, session):
        with self.changed:
            self.session = session
            for lock in self.held.values():
                lock.session = session
            self.generation += 1
            self.changed.notify_all()

    def watch(self):
        """Resumes the session when its plugin was killed."""
        while self.session.lost.wait():
            try:
                self.resume()
            except Exception:  # whatever it is: the session is lost
                with self.changed:
                    self.lost = True
                    self.changed.notify_all()
                return

    def resume(self):
        if self.is_lost():
            raise RuntimeError(self.session.reason)
        try:
            status = self.plugin.child.wait(1)
        except subprocess.TimeoutExpired:
            raise RuntimeError("the plugin runs, and has ended the stream")
        if status >= 0:
            raise RuntimeError("the plugin has exited")
        session = self.session.resume(self.launch())
        held = list(session.holds.values())
        for lock in held:
            lock.session = session
            try:
                lock.call("Acquire", lock={}, path=lock.path, resumed=lock.answer.grant)
            except grpc.RpcError as err:
                if "NOT_HELD" not in reasons(err):
                    raise
                session.holds.pop(lock.request)
                lock.lost.set()
        session.service.DropRest(session_pb2.DropRestRequest(session=session.name))
        for lock in held:
            if not lock.lost.is_set():
                lock.call("Watch")
        self.use(session)

    def is_lost(self):
        reported = self.session.lost.is_set() and not self.session.was_cut_off()
        return self.lost or reported or self.session.remaining() <= 0

    def await_plugin(self, after=0):
        """Waits until a plugin serves the session, and returns its number. after is that of one that was killed."""
        with self.changed:
            self.changed.wait_for(
                lambda: self.lost or self.generation > after and not self.session.lost.is_set(), max(0, self.session.remaining()))
            if self.is_lost():
                raise Refused("SESSION_LOST")
            return self.generation

    def repeat(self, f):
        """Calls f until it returns an answer. If a call was cut off, which is an error without ErrorInfo, the
        next plugin gets it."""
        after = 0
        while True:
            after = self.await_plugin(after)
            try:
                answer = f()
                if answer:
                    return
            except grpc.RpcError as err:
                if reasons(err):
                    raise Refused(*reasons(err))
                if err.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
                    raise Refused("DEADLINE_EXCEEDED")

    # The steps.

    def open(self, milliseconds):
        timeout = duration_pb2.Duration()
        timeout.FromMilliseconds(int(milliseconds))
        config = config_pb2.Config(servers=[os.environ["ZKRECIPES_VERIFY_SERVERS"]], session_timeout=timeout)
        self.use(Session(self.launch(), session_pb2.Start(config=config)))
        threading.Thread(target=self.watch, daemon=True).start()

    def acquire(self, name, path, milliseconds=None, **fields):
        self.held.pop(name, None)
        self.held[name] = Lock(self, path, int(milliseconds) / 1000 if milliseconds else None, **fields)
        return self.held[name].answer.grant.token

    def try_(self, name, path):
        return self.acquire(name, path, **{"try": True})

    def held_(self, name):
        if self.is_lost():
            raise Refused("SESSION_LOST")
        if name not in self.held or self.held[name].lost.is_set():
            raise Refused("NOT_HELD")

    def write(self, name, path):
        self.held_(name)
        self.await_plugin()
        try:
            self.held[name].call("Write", ops=[grant_pb2.Op(kind=grant_pb2.OP_KIND_CREATE, path=path)])
        except grpc.RpcError as err:
            raise Refused(*reasons(err) or ["UNKNOWN_OUTCOME"])

    def release(self, name):
        self.repeat(lambda: self.held[name].release() is None)
        del self.held[name]

    def close(self):
        request = session_pb2.CloseRequest(session=self.session.name)
        self.repeat(lambda: self.session.service.Close(request, timeout=20) is not None)

    def end(self):
        """Ends the plugin, and kills it if it does not answer."""
        self.lost = True
        if self.plugin:
            with contextlib.suppress(grpc.RpcError, subprocess.TimeoutExpired):
                self.plugin.close(3)


def main():
    host = Host()
    steps = {"open": host.open, "acquire": host.acquire, "try": host.try_, "held": host.held_,
             "write": host.write, "release": host.release, "close": host.close}
    for line in sys.stdin:
        verb, *arguments = line.split()
        try:
            if verb not in steps:
                raise Refused("UNSUPPORTED")
            result = steps[verb](*arguments)
            print("ok", "" if result is None else result, flush=True)
        except Refused as refused:
            print("error", ",".join(refused.args), flush=True)
        except Exception as err:
            print("error", "INTERNAL", " ".join(repr(err).split()), flush=True)
    host.end()


main()
