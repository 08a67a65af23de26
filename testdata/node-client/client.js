// A zkrecipes host without Go. It launches the plugin as hashicorp/go-plugin
// does, loads the .proto files, opens a session, takes a lock, prints its
// fencing token, and gives the lock back. See plugin/proto/PROTOCOL.md.
//
//     node client.js PLUGIN PROTO_DIRECTORY HOST:PORT PATH
'use strict'

const { spawn } = require('node:child_process')
const { mkdtempSync, rmSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { join } = require('node:path')
const { createInterface } = require('node:readline')
const { randomUUID } = require('node:crypto')
const grpc = require('@grpc/grpc-js')
const loader = require('@grpc/proto-loader')

const [plugin, protos, server, path] = process.argv.slice(2)

// 1. The handshake. The plugin starts only with the magic cookie, and prints one
// line: core version | protocol version | network | address | "grpc" | certificate.
// Without PLUGIN_CLIENT_CERT there is no TLS: the directory of the socket, which
// only this user can enter (mkdtemp), keeps others away.
async function launch (directory) {
  const child = spawn(plugin, [], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ZKRECIPES_PLUGIN: '5b1c9f0e-recipes-of-zookeeper',
      ZKRECIPES_PLUGIN_LOG_LEVEL: 'warn',
      PLUGIN_PROTOCOL_VERSIONS: '1',
      PLUGIN_UNIX_SOCKET_DIR: directory,
      TMPDIR: directory
    }
  })
  const exited = new Promise((resolve) => child.on('exit', resolve))
  for await (const line of createInterface({ input: child.stdout })) {
    const [core, protocol, network, address, kind] = line.split('|')
    if (core !== '1' || protocol !== '1' || kind !== 'grpc') throw new Error(`unexpected handshake: ${line}`)
    return { exited, target: network === 'unix' ? `unix:${address}` : address }
  }
  throw new Error(`the plugin ended before its handshake, with ${await exited}`)
}

const v1 = grpc.loadPackageDefinition(loader.loadSync(
  ['plugin', 'session', 'grant'].map((name) => `zkrecipes/v1/${name}.proto`),
  { includeDirs: [protos], longs: String, enums: String, keepCase: true }
)).zkrecipes.v1

const insecure = grpc.credentials.createInsecure()
const call = (client, method, request) => new Promise((resolve, reject) => {
  const deadline = Date.now() + 20000
  client[method](request, { deadline }, (err, response) => err ? reject(err) : resolve(response))
})

// 3. The session's stream is the lease on it: a Beat every fifth of the session
// timeout, or the plugin takes us for dead. A host that relies on its lock also
// counts the time since the last Beat that was echoed; see session.proto.
function open (target) {
  const stream = new v1.SessionService(target, insecure).Open()
  let timer
  let number = 0
  return new Promise((resolve, reject) => {
    stream.on('error', reject) // after the session was opened it says nothing new
    stream.on('data', ({ opened, state_changed: change }) => {
      if (change) console.log('session', change.state)
      if (!opened) return
      const timeout = Number(opened.timeout.seconds) * 1000 + opened.timeout.nanos / 1e6
      timer = setInterval(() => stream.write({ beat: { number: ++number } }), timeout / 5)
      resolve({ id: opened.session, end: () => { clearInterval(timer); stream.end() } })
    })
    stream.write({ start: { config: { servers: [server] } } })
  })
}

async function main () {
  const directory = mkdtempSync(join(tmpdir(), 'zkrecipes-'))
  try {
    const { target, exited } = await launch(directory)

    // 2. The plugin lives as long as the stream of Attach.
    const plugin = new v1.PluginService(target, insecure)
    const attached = plugin.Attach({})
    attached.on('error', () => {})
    await new Promise((resolve) => attached.once('data', resolve))
    console.log('capabilities', (await call(plugin, 'Info', {})).capabilities.join(' '))

    const session = await open(target)

    // 4. The lock. The request id is what the grant is called from now on.
    const requestId = randomUUID()
    const grants = new v1.GrantService(target, insecure)
    const { grant } = await call(grants, 'Acquire', { session: session.id, request_id: requestId, path, data: Buffer.from('node'), lock: {} })
    console.log('token', grant.token)
    await call(grants, 'Release', { session: session.id, request_id: requestId })
    console.log('released')

    // 5. An error: what matters is the reason in google.rpc.ErrorInfo.
    try {
      await call(grants, 'Acquire', { session: session.id, request_id: randomUUID(), path: 'no-slash', lock: {} })
    } catch (err) {
      const details = err.metadata.get('grpc-status-details-bin').map((d) => d.toString('latin1')).join()
      console.log('refused', grpc.status[err.code], /INVALID[A-Z_]*/.exec(details)[0])
    }

    // 6. The end.
    await call(plugin, 'Shutdown', {})
    session.end()
    attached.cancel()
    await exited
    console.log('the plugin has ended')
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

main().then(() => process.exit(0), (err) => { console.error(err); process.exit(1) })
