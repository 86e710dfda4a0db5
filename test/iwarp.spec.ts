/** iWARP between two simulated hosts, from rdma_cm to the bytes on the cable, which an independent reader checks. */
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { CaptureReading, readCapture } from '../analyser/capture/index.ts';
import { client, server } from '../examples/rdma-cm-echo.ts';
import runCompare from '../experiments/runs/compare-run.ts';
import type { MachineOptions } from '../machine/machine.ts';
import type { Report } from '../machine/report/schema.ts';
import { expectBalanced } from './expectations.ts';
import { bytesOf, programOf, programsOf, runPrograms, smallMachine, smallMemory } from './machines.ts';
import type { IwarpFound } from './programs/iwarp.ts';
import type { ExtensionsFound } from './programs/iwarp-extensions.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const iwarp = (more: MachineOptions = {}): MachineOptions => ({
  ...more,
  set: { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.transport': 'iwarp', ...more.set },
});

/**
 * Around the borders of segments. RFC 5044, 3: EMSS 1460 leaves a ULPDU of 1454; an untagged segment has 18 bytes of headers, a tagged
 * one 14 (RFC 5041, 4).
 */
const sizes = [0, 1, 3, 1435, 1436, 1437, 1439, 1440, 1441, 5000, 65_536];
const allRight = sizes.map(() => true);

const everyVerb = (more: MachineOptions = {}) =>
  runPrograms(programsOf('iwarp', 'everyVerb', { sizes }), iwarp(more));

const ofNode = (report: Report, node: number) => report.nodes[node]!.hca.iwarp!;

describe('two hosts over iWARP', () => {
  let found: readonly IwarpFound[];
  let report: Report;
  beforeAll(async () => {
    const outcome = await everyVerb();
    found = outcome.results as readonly IwarpFound[];
    report = outcome.report;
  });

  it('RFC 5040, 5.5: move the bytes of WRITE, SEND and READ of each size, in both directions at once', () => {
    for (const { read, written, received } of found)
      expect({ read, written, received }).toEqual({ read: allRight, written: allRight, received: allRight });
    expectBalanced(report);
  });

  it('are RNICs whose transport is iWARP, and refuse what it lacks as Linux’s drivers do', () => {
    for (const { transport, nodeType, refused } of found)
      expect({ transport, nodeType, refused }).toEqual({
        transport: 1,
        nodeType: 4,
        refused: ['EOPNOTSUPP', 'EOPNOTSUPP', 'EOPNOTSUPP'],
      });
  });

  it('RFC 5044, 4; RFC 5041, 4: divide messages into segments by the longest ULPDU', () => {
    const segmentsOf = (most: number): number =>
      sizes.reduce((sum, size) => sum + Math.max(1, Math.ceil(size / most)), 0);
    const bytes = sizes.reduce((sum, size) => sum + size, 0);
    // The initiator's ready-to-receive message is a WRITE of no bytes (RFC 6581, 4.3).
    [1, 0].forEach((ready, node) => {
      const { sent, received } = ofNode(report, node);
      expect(sent['WRITE']).toEqual({ segments: segmentsOf(1454 - 14) + ready, payloadBytes: bytes });
      expect(sent['SEND']).toEqual({ segments: segmentsOf(1454 - 18), payloadBytes: bytes });
      expect(sent['READ_REQUEST']!.segments).toBe(sizes.length);
      expect(received['READ_RESPONSE']).toEqual({ segments: segmentsOf(1454 - 14), payloadBytes: bytes });
    });
  });

  it('have the TCP engine’s blocks in their report: that of its events was busy for the four of the connection', () => {
    // Established or accepted, bytes of the peer's MPA frame, its FIN, and the end.
    for (const { hca } of report.nodes) {
      expect(Object.keys(hca.blocks)).toEqual(
        expect.arrayContaining(['tcpEngine', 'tcpTransmitter', 'tcpEvents']),
      );
      expect(hca.blocks['tcpEvents']!.busyCycles).toBe(4);
    }
  });

  it.each(['per-node', 'per-device'] as const)(
    'have the same report in the partition %s',
    async (partition) => {
      const again = await everyVerb({ partition });
      expect(bytesOf(again.report)).toBe(bytesOf(report));
    },
  );
});

describe('the ready-to-receive message', () => {
  it.each([
    ['read', 'READ_REQUEST'],
    ['send', 'SEND'],
    ['write', 'WRITE'],
  ] as const)(
    'RFC 6581, 4 and 9: is a %s of no bytes where the host wants that kind, and no request of a program',
    async (kind, opcode) => {
      const { results, report } = await everyVerb({ set: { 'driver.mpaReadyMessage': kind } });
      for (const { read, written, received } of results as readonly IwarpFound[])
        expect({ read, written, received }).toEqual({
          read: allRight,
          written: allRight,
          received: allRight,
        });
      // Node 0 is the initiator; both send the same otherwise.
      const [ofInitiator, ofResponder] = [0, 1].map((node) => ofNode(report, node).sent[opcode]!.segments);
      expect(ofInitiator).toBe(ofResponder! + 1);
      expectBalanced(report);
    },
  );
});

describe('a stream of READs', () => {
  it('RFC 6581, 6: has as many in flight as the ends agreed on, here 16', async () => {
    const args = { path: 'read', sizeBytes: 64, totalBytes: 64 * 64, latencyRounds: 2, file: null } as const;
    const { isEqual, durationPs, latencyPs } = await runCompare({
      machine: iwarp({ set: smallMemory }),
      args,
    });
    expect(isEqual).toBe(true);
    // One after another would take the latency of each.
    expect(durationPs).toBeLessThan((64 * latencyPs) / 8);
  });
});

describe('rdma_cm over iWARP', () => {
  it('keeps the rules of the interface, by the linter', async () => {
    await using machine = await smallMachine(iwarp({ analysis: { lint: true } }));
    await machine.load({ node: 0, run: client });
    await machine.load({ node: 1, run: server });
    await machine.run();
    expect(await machine.results()).toEqual(['echo over a connection', 'hello']);
    expectBalanced(await machine.report());
    expect((await machine.analyses()).flatMap(({ findings }) => findings)).toEqual([]);
  });

  it('RFC 5044, 7.1.1: puts MPA’s request and reply before the first FPDU, with the CRC32c of each FPDU right', async () => {
    const analysis = { capture: { ends: [{ node: 0 }], sizeBytes: 2 ** 21 } };
    await using machine = await smallMachine(iwarp({ analysis }));
    for (const program of programsOf('iwarp', 'everyVerb', { sizes: [0, 1441] })) await machine.load(program);
    await machine.run();
    const { frames } = readCapture((await machine.capture())!);
    const payloads = [new Map<number, Uint8Array>(), new Map<number, Uint8Array>()];
    for (const { bytes } of frames) {
      if (bytes[12] !== 0x08 || bytes[13] !== 0x00 || bytes[23] !== 6) continue;
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
      const tcp = 14 + (bytes[14]! & 0x0f) * 4;
      const end = 14 + view.getUint16(16);
      const from = tcp + (bytes[tcp + 12]! >> 4) * 4;
      // 10.0.0.1 sends, or 10.0.0.2.
      if (end > from) payloads[bytes[29]! - 1]!.set(view.getUint32(tcp + 4), bytes.slice(from, end));
    }
    const keys = ['MPA ID Req Frame', 'MPA ID Rep Frame'];
    payloads.forEach((segments, end) => {
      const ordered = [...segments.values()];
      expect(Buffer.from(ordered[0]!.subarray(0, 16)).toString()).toBe(keys[end]);
      for (const fpdu of ordered.slice(1)) {
        const view = new DataView(fpdu.buffer, fpdu.byteOffset, fpdu.length);
        const covered = 2 + view.getUint16(0) + ((-2 - view.getUint16(0)) & 3);
        expect(fpdu.length).toBe(covered + 4);
        expect(view.getUint32(covered, true)).toBe(crc32cOf(fpdu.subarray(0, covered)));
      }
      expect(ordered.length).toBeGreaterThan(4);
    });
  });
});

/** RFC 3385, polynomial 0x1edc6f41, reflected, bit by bit. */
function crc32cOf(bytes: Uint8Array): number {
  let crc = 0xffff_ffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f6_3b78 : 0);
  }
  return (crc ^ 0xffff_ffff) >>> 0;
}

describe('RFC 7306, with hca.capability.iwarpExtensions', () => {
  const args = { adds: 20, writeBytes: 3000 };
  const run = (more: MachineOptions = {}) =>
    runPrograms(
      programsOf('iwarp-extensions', 'extensions', args),
      iwarp({ ...more, set: { 'hca.capability.iwarpExtensions': true, ...more.set } }),
    );

  it.each([[[]], [[{ packet: 'lost', chance: '2%' }]]])(
    'atomics and WRITEs with immediate data do what they do on InfiniBand, with the faults %j',
    async (faults) => {
      const { results, report } = await run({ faults });
      const values = Array.from({ length: args.adds + 1 }, (_, index) => index);
      (results as readonly ExtensionsFound[]).forEach((found, node) => {
        expect(found).toEqual({
          atomicCap: 1,
          before: values,
          // The peer has swapped it.
          counter: 1000 + (1 - node),
          immediate: 0xabc0 + (1 - node),
          byteLen: args.writeBytes,
          isWritten: true,
        });
        const { sent, received } = ofNode(report, node);
        for (const [name, segments] of [
          ['ATOMIC_REQUEST', args.adds + 1],
          ['ATOMIC_RESPONSE', args.adds + 1],
          ['IMMEDIATE', 1],
        ] as const) {
          expect(sent[name]!.segments).toBe(segments);
          expect(received[name]!.segments).toBe(segments);
        }
      });
      expectBalanced(report);
    },
  );

  it('a capture tells them, by a reader that shares no format with the card', async () => {
    const analysis = { capture: { ends: [{ node: 0 }], sizeBytes: 2 ** 21 } };
    await using machine = await smallMachine(
      iwarp({ analysis, set: { 'hca.capability.iwarpExtensions': true } }),
    );
    for (const program of programsOf('iwarp-extensions', 'extensions', args)) await machine.load(program);
    await machine.run();
    const reading = new CaptureReading({ lines: Number.POSITIVE_INFINITY, isTroubleOnly: false });
    reading.push((await machine.capture())!);
    reading.end();
    const [conversation] = reading.conversations();
    expect(conversation!.counts).toMatchObject({
      'ATOMIC request': 2 * (args.adds + 1),
      'ATOMIC response': 2 * (args.adds + 1),
      IMMEDIATE: 2,
    });
    expect(conversation!.utterances.filter(({ isTrouble }) => isTrouble)).toEqual([]);
  });
});

describe('two programs of one host over iWARP', () => {
  it('connect by the address of that host, move the bytes of each size, and no frame of theirs is on the cable', async () => {
    const programs = [
      programOf('iwarp-loopback', 'client', 0, { args: { sizes } }),
      programOf('iwarp-loopback', 'server', 0, { args: { sizes } }),
    ];
    const { results, report } = await runPrograms(programs, iwarp());
    // The RST of a port without a listener has no private data; the program's refusal has the byte 9.
    expect(results).toEqual([{ read: allRight, refusal: [9] }, sizes.map(() => [true, true])]);
    expectBalanced(report);
    const { sent, received, looped, frames } = ofNode(report, 0);
    expect([sent, received, frames]).toEqual([{}, {}, 0]);
    const bytes = sizes.reduce((sum, size) => sum + size, 0);
    for (const rows of [looped!.sent, looped!.received])
      for (const name of ['WRITE', 'SEND', 'READ_RESPONSE']) expect(rows[name]!.payloadBytes).toBe(bytes);
    const { sentFrames, receivedFrames, heldFrames, droppedFrames } = looped!.frames;
    expect([receivedFrames, heldFrames, droppedFrames]).toEqual([sentFrames, 0, 0]);
  });
});

describe('a cable that loses frames', () => {
  it('RFC 6675: loses no byte, and the report counts what TCP sent again', async () => {
    const faults = [{ packet: 'lost', chance: '2%', node: 0 }];
    const { results, report } = await everyVerb({ faults });
    for (const { read, written, received } of results as readonly IwarpFound[])
      expect({ read, written, received }).toEqual({ read: allRight, written: allRight, received: allRight });
    expect(ofNode(report, 0).tcp['retransmissions']).toBeGreaterThan(0);
    expectBalanced(report);
  });
});

describe('a cable that damages frames within a switch', () => {
  it.each(['header', 'payload'] as const)(
    'RFC 9293, 3.1: drops those with a wrong bit in their %s, by a checksum, and loses no byte',
    async (where) => {
      const faults = [{ packet: 'corrupted', crc: 'icrc', where, chance: '5%', node: 0, seed: 1 }] as const;
      const capture = { ends: [{ node: 0 }], sizeBytes: 2 ** 22 };
      await using machine = await smallMachine(iwarp({ faults, analysis: { capture } }));
      for (const program of programsOf('iwarp', 'everyVerb', { sizes })) await machine.load(program);
      await machine.run();
      for (const { read, written, received } of (await machine.results()) as readonly IwarpFound[])
        expect({ read, written, received }).toEqual({
          read: allRight,
          written: allRight,
          received: allRight,
        });
      const report = await machine.report();
      expectBalanced(report);
      const { frames } = readCapture((await machine.capture())!);
      const damaged = frames.filter(({ comment }) => comment === 'damaged within a switch by a fault');
      expect(damaged.length).toBeGreaterThan(3);
      expect(report.faults).toEqual([
        { fault: expect.stringContaining(`where=${where}`), fired: damaged.length },
      ]);
      // A damaged IP header may be of no segment, so that the frame is not the engine's.
      const dropped = ofNode(report, 1).dropped['damaged']!;
      if (where === 'payload') expect(dropped).toBe(damaged.length);
      else expect(dropped).toBeGreaterThan(damaged.length / 2);
    },
  );
});

describe('cards that pack FPDUs into segments and place segments after a gap', () => {
  it('RFC 5044, 4.5; RFC 5041, 5.3: lose no byte, and their ledgers balance', async () => {
    const set = {
      'driver.mpaMarkers': true,
      'hca.iwarp.packsFpdus': true,
      'hca.iwarp.earlySegments': 16,
      'hca.iwarp.retransmitMinUs': 1000,
    };
    const faults = [{ packet: 'lost', chance: '3%' }] as const;
    const { results, report } = await everyVerb({ set, faults });
    for (const { read, written, received } of results as readonly IwarpFound[])
      expect({ read, written, received }).toEqual({ read: allRight, written: allRight, received: allRight });
    expectBalanced(report);
  });
});

describe('a machine', () => {
  it.each([
    [
      { 'hca.capability.linkLayer': 'infiniband' },
      /hca.capability.transport is "iwarp", expected ibta where ports are of InfiniBand/,
    ],
    [{ 'hca.capability.roce': 'v2' }, /hca.capability.roce is "v2", expected none/],
    [{ 'hca.iwarp.earlySegments': 4 }, /hca.iwarp.earlySegments is 4, expected 0, or driver.mpaMarkers=true/],
  ])('with iWARP refuses %j', async (set, message) => {
    await expect(smallMachine(iwarp({ set }))).rejects.toThrow(message);
  });

  it('with iWARP refuses a fault that names a header of InfiniBand’s transport', async () => {
    const faults = [{ packet: 'lost', only: 'responses' }] as const;
    await expect(smallMachine(iwarp({ faults }))).rejects.toThrow(
      'fault 1 (packet), field only, is "responses", expected left out, or pauses, with hca.capability.transport=iwarp',
    );
  });
});
