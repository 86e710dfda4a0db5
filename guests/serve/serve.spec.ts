import { spawn } from 'node:child_process';
import { closeSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { bar0 } from '../../abi/bar-map.ts';
import { createMemfd, VfioUserClient } from '../slot/client/client.ts';
import { INTERRUPT_MSIX } from '../slot/device.ts';
import { nativeUnavailableReason } from '../slot/index.ts';
import { createEventfd, drainEventfd } from '../slot/native/poll.ts';
import { qemuOptionLines } from './qemu-options.ts';
import { renderServeReport } from './render-serve-report.ts';
import { serve } from './serve.ts';
import { serveOrderOf } from './serve-options.ts';
import type { ServeReport } from './serve-report.ts';
import { BAR0, BAR2, CONFIG } from './testing/slot-bench.ts';

vi.setConfig({ testTimeout: 120_000 });

const unavailable = nativeUnavailableReason();
const folder = mkdtempSync(join(tmpdir(), 'hca-serve-'));
afterAll(() => rmSync(folder, { recursive: true }));

let socketCount = 0;
const newSocket = (): string => join(folder, `${socketCount++}.sock`);

const nap = new Int32Array(new SharedArrayBuffer(4));
const pause = (): void => void Atomics.wait(nap, 0, 0, 1);

/** A guest's machine: 1 MiB of memory, BARs placed, bus mastering on. */
function guestAt(path: string) {
  const client = new VfioUserClient(path, pause);
  client.handshake();
  const memfd = createMemfd(1 << 20);
  client.map({ address: 0n, sizeBytes: 1n << 20n, readable: 1, writable: 1 }, memfd);
  client.write(CONFIG, 0x10, Uint8Array.of(0, 0, 0, 0xfe));
  client.write(CONFIG, 0x18, Uint8Array.of(0, 0, 0, 0xe0));
  client.write(CONFIG, 0x04, Uint8Array.of(6, 0));
  const read32 = (offset: number): number =>
    Buffer.from(client.read(BAR0, offset, 4) as Uint8Array).readUInt32BE();
  const post32 = (offset: number, value: number): void => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value >>> 0);
    client.post(BAR0, offset, bytes);
  };
  return { client, memfd, read32, post32 };
}

/** Runs a command by the HCR, polled. */
function command({ read32, post32 }: ReturnType<typeof guestAt>, opcode: number, outParam = 0): number {
  const { offset } = bar0.registers.hcr;
  for (const [word, value] of [0, 0, 0, 0, outParam, 0].entries()) post32(offset + 4 * word, value);
  const toggle = read32(offset + 24) & (1 << 21);
  post32(offset + 24, (1 << 23) | (toggle ^ (1 << 21)) | opcode);
  let status = read32(offset + 24);
  while ((status & (1 << 23)) !== 0) {
    pause();
    status = read32(offset + 24);
  }
  return status >>> 24;
}

const settled = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
};

it('RoCE is rejected for InfiniBand ports: it would have no effect', () => {
  const set = { 'hca.capability.roce': 'v1' };
  expect(() => serveOrderOf({ socket: 'socket', set })).toThrow(/roce is "v1", expected none/);
});

describe.skipIf(unavailable !== undefined)('a cable to a third-party endpoint', () => {
  const ethernet = { 'hca.capability.linkLayer': 'ethernet' };

  it('accepts any endpoint that connects, whose frames are in the report, until it disconnects', async () => {
    const notices: string[] = [];
    const [path, wire] = [newSocket(), newSocket()];
    const served = await serve(
      { socket: path, wire, set: ethernet },
      { onNotice: (text) => notices.push(text) },
    );
    const { client } = guestAt(path);
    const stranger = connect(wire);
    const frame = Buffer.alloc(60, 1);
    stranger.write(
      Buffer.concat([Buffer.from([0, 0, 0, 60]), frame, Buffer.from([0, 0, 0, 13]), frame.subarray(47)]),
    );
    await settled(() => notices.includes(`the cable is plugged in at ${wire}`));
    const framesOf = async () => (await served.report()).stranger!;
    while ((await framesOf()).framesFromClient < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    stranger.end();
    await settled(() => notices.some((text) => text === `the cable at ${wire} is unplugged: it hung up`));
    client.close();
    const report = await served.close();
    // No driver has opened the port: frames find the link down, or the port closed.
    const { discardedFrames, ...counted } = report.stranger!;
    expect(counted).toEqual({
      ...{ clients: 1, refused: 0, framesFromClient: 2, framesToClient: 0, unreadFrames: 0 },
      ...{ unfitFrames: 1, forgottenFrames: 0, waitingFrames: 0, holds: 0, heldMs: 0, expiredHolds: 0 },
    });
    expect(discardedFrames + (report.nodes[0]!.hca.ethernet!.dropped['portClosed'] ?? 0)).toBe(1);
    expect(report).toMatchObject({ cabling: 'socket', checks: { balanced: true }, defects: [] });
    expect(report.wire.map(({ from, to }) => [from, to])).toEqual([
      [0, 1],
      [1, 0],
    ]);
    expect(renderServeReport(report)).toContain(
      'At the other end of the cable (1): 1 plugged in; 2 frames of theirs, 0 to them, 1 frames that no cable carries',
    );
    expect(existsSync(wire)).toBe(false);
  });

  it.each([
    [{ set: {} }, /linkLayer is "infiniband", expected ethernet for a cable to a stranger/],
    [{ hcas: 2 }, /hcas is 2, expected 1 for a cable to a stranger/],
    [{ hcas: 2, cable: true }, /wire is .*, expected left out with a cable/],
    [{ loopbackPlug: false }, /loopbackPlug is false, expected left out with wire/],
    [{ wire: 'socket' }, /wire is "socket", expected a path of its own/],
    [
      { faults: [{ command: 'NOP', status: 'BAD_OP', node: 1 }] },
      /node is 1, expected 0 for a fault of command: node 1 is a stranger/,
    ],
  ])('is rejected for %j', (options, message) => {
    expect(() => serveOrderOf({ socket: 'socket', wire: 'wire', set: ethernet, ...options })).toThrow(
      message,
    );
  });
});

describe.skipIf(unavailable !== undefined)('serving guests on sockets', () => {
  it('lets a guest run a command and find its answer in memory', async () => {
    const served = await serve({ socket: newSocket() });
    const guest = guestAt(served.sockets[0]!);
    // QUERY_FW, into the second page.
    expect(command(guest, 0x004, 4096)).toBe(0);
    const answer = readFileSync(`/proc/self/fd/${guest.memfd}`).subarray(4096, 4096 + 16);
    // Command interface revision 3 (sheet 3.4, offset 0x0a).
    expect(answer.readUInt16BE(0x0a)).toBe(3);
    guest.client.close();
    closeSync(guest.memfd);
    const report = await served.close();
    expect(report.nodes[0]!.hca.commands['QUERY_FW']).toMatchObject({ count: 1 });
    expect(report.checks).toMatchObject({ balanced: true });
    expect(report.defects).toEqual([]);
  });

  it('lists features that a driver requests and the model lacks', async () => {
    const served = await serve({ socket: newSocket() });
    const guest = guestAt(served.sockets[0]!);
    // No opcode of the interface; BAD_OP is 2 (sheet 3.2).
    for (let turn = 0; turn < 2; turn++) expect(command(guest, 0x7f0)).toBe(2);
    guest.read32(0xf_0044);
    guest.client.close();
    closeSync(guest.memfd);
    const report = await served.close();
    expect(report.nodes[0]!.notModelled).toEqual({
      registers: { 'BAR0 0xf0044': { reads: 1, writes: 0 } },
      commands: { '0x7f0 modifier 0': 2 },
    });
    expect(renderServeReport(report)).toContain(
      'Not modelled, but asked for by the guest   hca 0: BAR0 0xf0044 (1 reads, 0 writes);  hca 0: 0x7f0 modifier 0 (2)',
    );
  });

  it('records times: each TLP of its report is in the timeline', async () => {
    const served = await serve({ socket: newSocket(), analysis: { timeline: {} } });
    const guest = guestAt(served.sockets[0]!);
    expect(command(guest, 0x004, 4096)).toBe(0);
    guest.client.close();
    closeSync(guest.memfd);
    const { nodes } = await served.close();
    const timeline = await served.timeline();
    expect(timeline.processes).toEqual(['guest0', 'hca0']);
    const { pcie } = nodes[0]!;
    for (const [process, { classes }] of [
      ['guest0', pcie.toHost],
      ['hca0', pcie.toDevice],
    ] as const) {
      const counted = Object.values(classes).reduce((sum, { tlps }) => sum + tlps, 0);
      const recorded = [...timeline.records()].filter(
        ({ kind, track }) => kind === 'tlp' && track.process === process,
      );
      expect(counted).toBeGreaterThan(0);
      expect(recorded.length, process).toBe(counted);
    }
    // The last access of the command, and the write of its answer, are between power-on and the end.
    expect(timeline.dropped.map(({ dropped }) => dropped)).toEqual([0, 0]);
    const without = await serve({ socket: newSocket() });
    await without.close();
    expect((await without.timeline()).count).toBe(0);
  });

  it('reports its figures while a guest runs, serves the next guest, and removes its socket at the end', async () => {
    const notices: string[] = [];
    const served = await serve({ socket: newSocket() }, { onNotice: (text) => notices.push(text) });
    for (let guest = 1; guest <= 3; guest++) {
      const { client, memfd, read32 } = guestAt(served.sockets[0]!);
      expect(read32(bar0.registers.owner.offset)).toBe(0);
      expect(read32(bar0.registers.owner.offset)).not.toBe(0);
      expect((await served.report()).nodes[0]!.sessions).toBe(guest);
      client.close();
      closeSync(memfd);
      await settled(() => notices.length === guest);
    }
    expect(existsSync(served.sockets[0]!)).toBe(true);
    const report = await served.close();
    expect(await served.report()).toEqual(report);
    expect(existsSync(served.sockets[0]!)).toBe(false);
    expect(notices[0]).toContain('the guest is gone');
  });

  it('ends by itself after its last guest on request', async () => {
    const served = await serve({ socket: newSocket(), hcas: 2, cable: true, once: true });
    expect(served.sockets.map((path) => path.slice(-2))).toEqual(['.0', '.1']);
    const guests = served.sockets.map(guestAt);
    guests[0]!.client.close();
    expect(guests[1]!.read32(bar0.registers.semaphore.offset)).toBe(0);
    guests[1]!.client.close();
    const report = await served.ended;
    expect(report.nodes.map(({ sessions }) => sessions)).toEqual([1, 1]);
    for (const { memfd } of guests) closeSync(memfd);
  });

  it('writes the eventfd of the vector that the device raises', async () => {
    const served = await serve({
      socket: newSocket(),
      // A message that the device never sent, for vector 3.
      faults: [{ interrupt: 'spurious', vector: 3, at: '2s' }],
    });
    const guest = guestAt(served.sockets[0]!);
    const eventfds = Array.from({ length: 4 }, createEventfd);
    expect(guest.client.setEventfds(INTERRUPT_MSIX, 0, 4, eventfds)).toBe(0);
    let count = 0;
    await settled(() => {
      count += drainEventfd(eventfds[3]!);
      return count > 0;
    });
    expect(eventfds.slice(0, 3).map(drainEventfd)).toEqual([0, 0, 0]);
    guest.client.close();
    const report = await served.close();
    expect(report.nodes[0]!.interrupts).toMatchObject([{ vector: 3, requested: 0, delivered: 1, raised: 1 }]);
    for (const descriptor of [...eventfds, guest.memfd]) closeSync(descriptor);
  });

  it('accepts thousands of doorbells without a reply to any', async () => {
    const served = await serve({ socket: newSocket() });
    const { client, memfd, read32 } = guestAt(served.sockets[0]!);
    for (let ring = 0; ring < 5000; ring++) client.post(BAR2, 128 * 4096 + 0x14, Uint8Array.of(0, 0, 1, 0));
    expect(read32(bar0.registers.semaphore.offset)).toBe(0);
    const { hca } = (await served.report()).nodes[0]!;
    expect(hca.doorbells['send']).toBe(5000);
    client.close();
    closeSync(memfd);
    await served.close();
  });

  it('rejects an unavailable path in one line', async () => {
    await expect(serve({ socket: join(folder, 'no', 'such', 'folder.sock') })).rejects.toThrow(
      /folder\.sock/,
    );
    const file = join(folder, 'a-file');
    writeFileSync(file, 'precious');
    await expect(serve({ socket: file })).rejects.toThrow(/a-file/);
    expect(readFileSync(file, 'utf8')).toBe('precious');
  });

  it('ends by SIGTERM with the report, and a page of it, as a command', async () => {
    const [socket, out, page] = [newSocket(), join(folder, 'report.json'), join(folder, 'report.html')];
    const main = fileURLToPath(new URL('../../bin/hca.js', import.meta.url));
    const [trace, vcd] = [join(folder, 'served.pftrace'), join(folder, 'served.vcd')];
    const files = ['--report', out, '--html', page, '--trace', trace, '--vcd', vcd];
    const child = spawn(process.execPath, [main, 'serve', '--socket', socket, '--keep', ...files]);
    let text = '';
    child.stdout.on('data', (bytes) => {
      text += String(bytes);
    });
    const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
    await settled(() => text.includes('Ends with Ctrl-C') || child.exitCode !== null);
    expect(text).toContain('"driver":"vfio-user-pci"');
    const { client, memfd, read32 } = guestAt(socket);
    read32(bar0.registers.owner.offset);
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
    client.close();
    closeSync(memfd);
    const report = JSON.parse(readFileSync(out, 'utf8')) as ServeReport;
    expect(report.schema).toBe('hca-serve-report/1');
    expect(report.nodes[0]!.accesses.registers['owner']).toEqual({ reads: 1, writes: 0 });
    expect(text).toContain('Register accesses of the guest');
    const html = readFileSync(page, 'utf8');
    expect(html).toContain(`configuration ${report.configHash.slice(0, 12)}`);
    expect(html).toContain(`hca serve --socket ${socket} --keep`);
    for (const words of ['What each block did', 'Register accesses of the guest', 'The ledgers balance'])
      expect(html).toContain(words);
    expect(html).not.toContain('<h2>Processors</h2>');
    expect(text).toMatch(/Recorded \d\d+ events in [^\n]*served\.pftrace and [^\n]*served\.vcd/);
    expect(readFileSync(trace, 'latin1')).toContain('guest0');
    expect(readFileSync(vcd, 'utf8')).toMatch(/\$scope module hca0 \$end/);
    expect(existsSync(socket)).toBe(false);
  });
});

describe('the options of a served machine', () => {
  const wrong: [words: string, options: Parameters<typeof serveOrderOf>[0]][] = [
    ['hcas', { socket: 's', hcas: 3 }],
    ['cable', { socket: 's', cable: true }],
    ['time scale', { socket: 's', timeScale: 0 }],
    ['time scale', { socket: 's', timeScale: Number.NaN }],
    ['socket', { socket: '' }],
    ['profile', { socket: 's', profile: 'no-such' }],
    [
      'packet is "congested"',
      {
        socket: 's',
        set: { 'hca.capability.linkLayer': 'ethernet' },
        faults: [{ packet: 'congested', nth: 1 }],
      },
    ],
    [
      'fault 1 (packet), field psn, is "+2"',
      {
        socket: 's',
        set: { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.transport': 'iwarp' },
        faults: [{ packet: 'lost', psn: '+2' }],
      },
    ],
    ['field node', { socket: 's', faults: [{ command: 'NOP', status: 'BAD_OP', node: 1 }] }],
  ];
  it.each(wrong)('are rejected if wrong: %s', (words, options) => {
    expect(() => serveOrderOf(options)).toThrow(words);
  });

  it('select the plug or cable of the port', () => {
    const cablingOf = (options: object) => serveOrderOf({ socket: 's', ...options }).cabling;
    expect(cablingOf({})).toBe('loopback');
    expect(cablingOf({ loopbackPlug: false })).toBe('open');
    expect(cablingOf({ hcas: 2, cable: true })).toBe('cable');
  });

  it('select whether shortcuts are used', () => {
    expect(serveOrderOf({ socket: 's' }).shortcuts).toBe(true);
    expect(serveOrderOf({ socket: 's', shortcuts: false }).shortcuts).toBe(false);
  });

  it('describe a host that accepts large payloads unless a profile is named', () => {
    const linkOf = (options: object) => serveOrderOf({ socket: 's', ...options }).config.pcie.link;
    expect(linkOf({}).maxPayloadBytes).toBe(512);
    expect(linkOf({ profile: 'connectx3-qdr' }).maxPayloadBytes).toBe(256);
    expect(linkOf({ set: { 'pcie.link.maxPayloadBytes': 1024 } }).maxPayloadBytes).toBe(1024);
  });

  it('are printed in shell syntax', () => {
    const [memory, device] = qemuOptionLines(["/tmp/it's.sock"]);
    expect(memory).toContain('memory-backend-memfd');
    expect(device).toContain(`"path":"/tmp/it'\\''s.sock"`);
  });
});
