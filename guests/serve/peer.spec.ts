/** A served machine with a simulated host, as the library provides it: threads, sockets, TCP, errors. A vfio-user client is the guest. */
import { closeSync, mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { createMemfd, VfioUserClient } from '../slot/client/client.ts';
import { nativeUnavailableReason } from '../slot/index.ts';
import { type ServedMachine, serve } from './serve.ts';
import { type PeerOptions, serveOrderOf } from './serve-options.ts';
import { CONFIG } from './testing/slot-bench.ts';

vi.setConfig({ testTimeout: 120_000 });

const unavailable = nativeUnavailableReason();
const folder = mkdtempSync(join(tmpdir(), 'hca-peer-'));
afterAll(() => rmSync(folder, { recursive: true }));

let socketCount = 0;
const newSocket = (): string => join(folder, `${socketCount++}.sock`);
const nap = new Int32Array(new SharedArrayBuffer(4));
const pause = (): void => void Atomics.wait(nap, 0, 0, 1);

const url = new URL('./testing/peer-programs.ts', import.meta.url).href;
const programOf = (exportName: string, more: Partial<PeerOptions> = {}): PeerOptions => ({
  run: { url, exportName },
  name: exportName,
  ...more,
});

/** A present guest, so that time passes. */
function guestAt({ sockets }: ServedMachine): { leave(): void } {
  const client = new VfioUserClient(sockets[0]!, pause);
  client.handshake();
  const memfd = createMemfd(1 << 20);
  client.map({ address: 0n, sizeBytes: 1n << 20n, readable: 1, writable: 1 }, memfd);
  client.read(CONFIG, 0, 4);
  return {
    leave() {
      client.close();
      closeSync(memfd);
    },
  };
}

/** All bytes of a connection, until its end. */
async function allOf(socket: Socket): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of socket) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

describe.skipIf(unavailable !== undefined)('a served machine with a simulated host', () => {
  it('carries a TCP connection of the guest to the program and back, byte for byte', async () => {
    await using served = await serve({ socket: newSocket(), peer: programOf('echo') });
    expect(served.qemuOptions.at(-1)).toBe('-netdev user,id=peer -device virtio-net-pci,netdev=peer');
    const guest = guestAt(served);
    const sent = Buffer.from(Array.from({ length: 3000 }, (_, at) => at % 256));
    const socket = connect({ port: served.peerPort!, host: '127.0.0.1', allowHalfOpen: true });
    socket.end(sent);
    expect((await allOf(socket)).equals(sent)).toBe(true);
    expect(await served.peerEnded).toMatchObject({ program: 'echo', outcome: 'ended', result: sent.length });
    guest.leave();
    const report = await served.close();
    expect(report.peer!.program).toMatchObject({ outcome: 'ended', result: sent.length });
    expect([report.checks.balanced, report.defects, report.cabling]).toEqual([true, [], 'cable']);
  });

  it('carries a connection of the program to a forwarded port of the guest, and to no other', async () => {
    const listener = createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket));
    await new Promise<void>((resolve) => {
      listener.listen(0, '127.0.0.1', resolve);
    });
    const { port } = listener.address() as { port: number };
    try {
      for (const guestPort of [18515, 80]) {
        const peer = programOf('call', { args: guestPort, guestPorts: { 18515: port } });
        await using served = await serve({ socket: newSocket(), peer });
        expect(served.qemuOptions.at(-1)).toContain(`hostfwd=tcp:127.0.0.1:${port}-:18515`);
        guestAt(served);
        const state = await served.peerEnded;
        if (guestPort === 80) {
          expect(state.error).toBe(
            'GuestStreamError: port is 80, expected a port of the guest that is forwarded: 18515',
          );
        } else {
          const sum = Array.from({ length: 5000 }, (_, at) => at % 256).reduce((all, byte) => all + byte, 0);
          expect(state).toMatchObject({ outcome: 'ended', result: sum });
        }
      }
    } finally {
      listener.close();
    }
  });

  it('reports a program that throws, and continues to serve', async () => {
    const notices: string[] = [];
    const options = { socket: newSocket(), peer: programOf('fail'), once: true };
    const served = await serve(options, { onNotice: (text) => notices.push(text) });
    const guest = guestAt(served);
    expect(await served.peerEnded).toMatchObject({ outcome: 'failed', error: 'RangeError: of its own' });
    expect(notices).toEqual(['program fail of the peer failed: RangeError: of its own']);
    guest.leave();
    const report = await served.ended;
    expect(report.peer!.program.stack).toContain('peer-programs');
    expect([report.checks.balanced, report.defects]).toEqual([true, []]);
  });

  it('ends with its report when a program has stopped its host', async () => {
    const served = await serve({ socket: newSocket(), peer: programOf('misuse') });
    const guest = guestAt(served);
    expect(await served.peerEnded).toMatchObject({
      outcome: 'failed',
      error: expect.stringContaining('await each settle, spin, sleep, wait and load before the next'),
    });
    const report = await served.ended;
    expect([report.peer!.program.outcome, report.defects]).toEqual(['failed', []]);
    guest.leave();
  });

  it('ends a while after the last guest with a program that has not ended, and reports its wait', async () => {
    const served = await serve({ socket: newSocket(), peer: programOf('wait'), once: true });
    const guest = guestAt(served);
    await served.take('begun');
    guest.leave();
    const { peer } = await served.ended;
    expect(peer!.program).toMatchObject({
      outcome: 'running',
      waitsIn: "program 'wait' on node 1 waits in exchange.take for 'what never comes'",
    });
  });

  it('accepts more from the guest at once than the exchange has room for, up to a limit', async () => {
    await using served = await serve({ socket: newSocket(), peer: programOf('echo') });
    guestAt(served);
    const socket = connect({ port: served.peerPort!, host: '127.0.0.1', allowHalfOpen: true });
    const sent = Buffer.alloc(400_000, 1);
    socket.end(sent);
    expect((await allOf(socket)).equals(sent)).toBe(true);
    expect(await served.peerEnded).toMatchObject({ result: sent.length });
    const flood = connect({ port: served.peerPort!, host: '127.0.0.1' });
    flood.on('error', () => {}).write(Buffer.alloc(3 << 20));
    await new Promise<void>((resolve) => {
      flood.once('close', () => resolve());
    });
    expect(() => served.put('much', 'x'.repeat(9000))).toThrow(
      'exchange much is "9011 bytes", expected at most 8192',
    );
  });

  it('passes values to the program and receives them from it', async () => {
    await using served = await serve({ socket: newSocket(), peer: programOf('echo') });
    guestAt(served);
    const taken = served.take('tcp');
    served.put('tcp.accept', { connection: 7 });
    served.put('tcp.7', 'a');
    served.put('tcp.7', null);
    expect(await served.peerEnded).toMatchObject({ result: 1 });
    await served.close();
    // Only the relay receives values of TCP; another waiter gets none.
    expect(await Promise.race([taken, Promise.resolve('nothing')])).toBe('nothing');
  });

  it.each([
    [{ run: { url: 'file:///nowhere.ts' } }, /program module is .*, expected a module that loads/],
    [{ run: { url, exportName: 'missing' } }, /expected one of .*echo/],
  ])('rejects a program that does not load: %j', async (peer, message) => {
    await expect(serve({ socket: newSocket(), peer })).rejects.toThrow(message);
  });
});

const withRoce = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v1' };
const withNic = { 'machine.adapter': 'nic', 'hca.capability.linkLayer': 'ethernet' };

describe('options of a simulated host', () => {
  const order = (more: object) => () => serveOrderOf({ socket: 's', peer: programOf('echo'), ...more });

  it.each([
    [{ hcas: 2 }, 'hcas is 2, expected 1 beside a peer'],
    [{ loopbackPlug: false }, 'loopbackPlug is false, expected left out beside a peer'],
    [{ peer: { run: () => {} } }, 'expected a module ({ url, exportName }): it runs in another thread'],
    [{ peer: programOf('echo', { guestPorts: { 70000: 1 } }) }, 'peer.guestPorts is 70000, expected ports'],
    [{ peer: programOf('echo', { guestPorts: { 1: 0 } }) }, 'peer.guestPorts is 0, expected ports'],
    [
      { set: { 'machine.adapter': 'nic' } },
      'hca.capability.linkLayer is "infiniband", expected ethernet beside a simulated host with a NIC',
    ],
    [
      { set: { 'hca.capability.linkLayer': 'ethernet' } },
      'hca.capability.roce is "none", expected v1 or v2 beside a simulated host with an HCA',
    ],
    [
      { set: { 'hca.capability.roce': 'v1' } },
      'hca.capability.roce is "v1", expected none where ports are of InfiniBand',
    ],
    [
      { set: { ...withRoce, 'ethernet.mtuBytes': 351 } },
      'ethernet.mtuBytes is 351, expected at least 352, so that frames hold a packet of RoCE',
    ],
    [{ peer: undefined, set: withNic }, 'machine.adapter is "nic", expected hca, unless a simulated host is'],
    [
      { peer: programOf('echo', { guestPorts: { 7: 8 } }), set: withNic },
      'peer.guestPorts is "7", expected left',
    ],
    [
      { set: { ...withNic, 'net.driver.mtu': 9000 } },
      'net.driver.mtu is 9000, expected at most ethernet.mtuBytes',
    ],
    [{ set: { 'machine.nodeCount': 4 } }, 'machine.nodeCount is 4, expected 2: the guest and its peer'],
  ])('are refused in words: %j', (more, message) => {
    expect(order(more)).toThrow(message);
  });

  it('allow an Ethernet port with RoCE', () => {
    expect(order({ set: withRoce })).not.toThrow();
    expect(order({ set: { ...withRoce, 'ethernet.mtuBytes': 352 } })).not.toThrow();
  });

  it('count the simulated host among the nodes: faults and captures may be there', () => {
    const capturing = (node: number) =>
      order({ analysis: { capture: { ends: [{ node }], sizeBytes: 1 << 20 } } });
    expect(capturing(1)).not.toThrow();
    expect(capturing(2)).toThrow('hca0 to hca1');
    expect(order({ faults: [{ packet: 'lost', nth: 1, node: 1 }] })).not.toThrow();
  });
});
