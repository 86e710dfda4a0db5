/**
 * Simulated hosts on a cable of Ethernet: the driver brings up a port with RoCE, the library and connection management address
 * by GIDs, and programs' requests pass through the device, whose frames other specs compare with the standard (`hw/hca/roce`,
 * `wire/roce-bytes`).
 */
import { describe, expect, it, vi } from 'vitest';
import { readCapture } from '../analyser/capture/index.ts';
import type { MachineOptions } from '../machine/machine.ts';
import { decodeEthernet, Opcode, type WirePacket } from '../wire/index.ts';
import { expectBalanced } from './expectations.ts';
import { bytesOf, programOf, programsOf, runPrograms, smallMachine } from './machines.ts';

vi.setConfig({ testTimeout: 120_000 });

type Version = 'v1' | 'v2';
const versions: readonly Version[] = ['v1', 'v2'];

const roce = (version: Version, more: MachineOptions = {}): MachineOptions => ({
  ...more,
  set: { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': version, ...more.set },
});

interface Said {
  readonly port: Readonly<Record<string, number>>;
  readonly gids: readonly (readonly [number, number, string])[];
  readonly none: string;
  readonly pkey: number;
  readonly path: { readonly grh: Readonly<Record<string, number | string>> };
  readonly isRight: boolean;
}

/** Three WRITEs, one after another, and the frames at both ends of the cable with the instants of their last bits. */
async function writes(version: Version, set: MachineOptions['set'] = {}, lengthBytes = 64) {
  const ends = [{ node: 0 }, { node: 1 }];
  const analysis = { capture: { ends, sizeBytes: 2 ** 20 }, timeline: { categories: ['packets'] as const } };
  await using machine = await smallMachine(roce(version, { set, analysis }));
  for (const program of programsOf('roce', 'oneByOne', lengthBytes)) await machine.load(program);
  await machine.run();
  const [near, far] = await machine.results<readonly [Said, Said]>();
  const { frames } = readCapture((await machine.capture())!);
  const records = [...(await machine.timeline()).records()];
  return { near, far, frames, records, report: await machine.report() };
}

const isArp = (bytes: Uint8Array): boolean => bytes[12] === 0x08 && bytes[13] === 0x06;
const packetOf = (bytes: Uint8Array): WirePacket => {
  const packet = decodeEthernet(bytes);
  return packet.kind === 'packet' ? packet : expect.fail(packet.kind);
};
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** ::ffff:10.0.0.1 and so on. */
const gidOf = (host: number): string => `00000000000000000000ffff0a00000${host + 1}`;
const macs = ['0002c9000001', '0002c9000011'];

describe.each(versions)('RoCE %s between simulated hosts', (version) => {
  const isV2 = version === 'v2';

  it('IBTA A16.4, A17.4: has GIDs of its MAC and of its IPv4 address, and no LID', async () => {
    const { near, far, frames, report } = await writes(version);
    expectBalanced(report);
    // 1500 bytes hold 1024 and their headers; 10 Gb/s is a lane of QDR.
    const link = { activeWidth: 1, activeSpeed: 4, state: 4, physState: 5 };
    const addresses = { linkLayer: 2, lid: 0, smLid: 0, pkeyTblLen: 1 };
    expect(near.port).toMatchObject({ ...link, ...addresses, activeMtu: 3, maxMtu: 5 });
    // Link-local address of 00:02:c9:00:00:01, by RFC 4291, appendix A: the second lowest bit of the first byte
    // inverted, fffe in the middle.
    const local = 'fe800000000000000202c9fffe000001';
    const table = [local, gidOf(0)].flatMap((gid) => (isV2 ? [gid, gid] : [gid]));
    expect(near.gids).toEqual(table.map((gid, at) => [at, isV2 ? 1 + (at % 2) : 1, gid]));
    expect([near.none, near.pkey]).toEqual(['0'.repeat(32), 0xffff]);
    expect(near.path).toMatchObject({
      isGlobal: 1,
      dlid: 0,
      srcPathBits: 0,
      grh: { dgid: gidOf(1), sgidIndex: table.length - 1, hopLimit: 64 },
    });
    expect([far.isRight, far.gids.at(-1)?.[2]]).toEqual([true, gidOf(1)]);
    const first = frames.find(({ bytes }) => !isArp(bytes))!;
    const { ethernet, ipv4, grh, udp, bth, isIcrcRight } = packetOf(first.bytes);
    expect([hex(ethernet!.source), hex(ethernet!.destination)]).toEqual(macs);
    expect([bth.opcode, isIcrcRight]).toEqual([Opcode.RC_RDMA_WRITE_ONLY, true]);
    if (!isV2)
      expect([hex(grh!.sourceGid), hex(grh!.destinationGid), grh!.hopLimit]).toEqual([
        gidOf(0),
        gidOf(1),
        64,
      ]);
    else {
      expect(ipv4).toMatchObject({ source: 0x0a00_0001, destination: 0x0a00_0002, timeToLive: 64 });
      // Two equal QPNs, 520 or 0x208, give their own folded bytes, 8 with 2 in place, in the dynamic ports.
      expect(udp).toMatchObject({ destinationPort: 4791, sourcePort: 0xc208 });
    }
  });

  it.each([10, 40])(
    'takes the time of its bytes at %i Gb/s, to the picosecond',
    async (gigabitsPerSecond) => {
      const { frames, records } = await writes(version, {
        'ethernet.gigabitsPerSecond': gigabitsPerSecond,
        'hca.coreClockMHz': 1000,
      });
      const bytePs = 8000 / gigabitsPerSecond;
      // Destination, source, type 14; GRH 40, or IPv4 20 and UDP 8; BTH 12; RETH 16 and the payload, or AETH 4; ICRC 4; FCS 4.
      const network = isV2 ? 28 : 40;
      const write = 14 + network + 12 + 16 + 64 + 4 + 4;
      const acknowledgement = 14 + network + 12 + 4 + 4 + 4;
      const last = frames.slice(-4);
      // Captures have no FCS.
      expect(last.map(({ bytes }) => bytes.length + 4)).toEqual([
        write,
        write,
        acknowledgement,
        acknowledgement,
      ]);
      const [left, arrived, answered, acknowledged] = last.map(({ timePs }) => Number(timePs));
      // Two ports of 150 ns, 2 m of 4.8 ns.
      const cablePs = 309_600;
      expect([arrived! - left!, acknowledged! - answered!]).toEqual([cablePs, cablePs]);
      // At the next cycle: 75 of the receiver's latency, 2 for 64 bytes, 8 until it is acknowledged, 6 to form that, 60 to
      // transmit it.
      const edgePs = (Math.floor(arrived! / 1000) + 1) * 1000;
      // Preamble and start of the frame: 8 bytes.
      expect(answered).toBe(edgePs + 151_000 + (8 + acknowledgement) * bytePs);
      // A timeline has them as packets: opcode, QP, PSN, payload.
      const seen = records
        .filter(({ kind }) => kind === 'packet')
        .slice(-2)
        .map(({ kind, durationPs, values }) => [kind, durationPs, values[0], values[3]]);
      expect(seen).toEqual([
        ['packet', (8 + write) * bytePs, Opcode.RC_RDMA_WRITE_ONLY, 64],
        ['packet', (8 + acknowledgement) * bytePs, Opcode.RC_ACKNOWLEDGE, 0],
      ]);
    },
  );

  it('carries all operations of RC in both directions, every byte right', async () => {
    const args = { qps: 2, rounds: 3 };
    const { report } = await runPrograms(programsOf('mixture', 'polling', args), roce(version));
    expectBalanced(report);
    const { transmitted, roce: packets, busyPs } = report.nodes[0]!.hca.ethernet!;
    const sum = Object.values({ ...packets!.transmitted }).reduce((total, row) => total + row.packets, 0);
    // Also an ARP request and an answer: each host has sent its request before the peer's has arrived.
    const arp = 2;
    expect(transmitted['frames']).toBe(sum + arp);
    // 10 Gb/s: 0.8 ns for each byte, including preamble and gap.
    expect(busyPs).toBe((transmitted['bytes']! + 20 * (sum + arp)) * 800);
    // 42 bytes of ARP, 18 of padding and FCS; their payload is the rest after the header of 14 and the FCS.
    const frames = { packets: arp, bytes: arp * 64, payloadBytes: arp * 46 };
    const opcodes = { ...packets!.transmitted, FRAME: frames };
    expect(report.wire[0]).toMatchObject({ packets: sum + arp, busyPs, opcodes });
    expect(Object.keys(report.operations)).toContain('FETCH_ADD');
    expect(report.operations['FRAME']).toMatchObject({
      count: 2 * arp,
      payloadBytes: 2 * arp * 42,
      failed: 0,
    });
  });

  it('IBTA 11.4.2.1: puts the network header before a datagram, also of one to the port itself', async () => {
    const { results, report } = await runPrograms(programsOf('roce', 'datagram'), roce(version));
    const taken = (from: number) => ({
      byteLen: 540,
      immData: 77,
      // IBV_WC_GRH and IBV_WC_WITH_IMM.
      wcFlags: 3,
      srcQp: expect.any(Number) as number,
      isRight: true,
      // BTH 12, DETH 8, immediate 4, payload 500, ICRC 4 are 528 bytes; with UDP 536, with IPv4 556.
      header: expect.stringMatching(
        isV2
          ? RegExp(`^0{40}4500022c000040004011....0a00000${from + 1}0a000002$`)
          : RegExp(`^6000000002101b40${gidOf(from)}${gidOf(1)}$`),
      ) as string,
    });
    expect(results).toEqual(['SUCCESS', [taken(0), 'SUCCESS', taken(1)]]);
    expectBalanced(report);
  });

  it('connects by rdma_cm, also if the request is lost', async () => {
    const url = new URL('../examples/rdma-cm-echo.ts', import.meta.url);
    const programs = ['client', 'server'].map((exportName, node) => ({ node, run: { url, exportName } }));
    // The first frame is ARP.
    const faults = [{ packet: 'lost', node: 0, nth: 2 } as const];
    const { results, report } = await runPrograms(programs, roce(version, { faults }));
    expect(results).toEqual(['echo over a connection', 'hello']);
    expectBalanced(report);
  });
});

describe('RoCE v2 between simulated hosts', () => {
  it.each([
    ['lost', { packet: 'lost', chance: 0.03 }],
    ['damaged within a switch', { packet: 'corrupted', crc: 'icrc', chance: 0.03 }],
    ['doubled', { packet: 'duplicated', chance: 0.03 }],
    ['out of order', { packet: 'reordered', chance: 0.03 }],
  ] as const)('IBTA 9.7: loses no byte of RC while packets are %s', async (_what, fault) => {
    const faults = [0, 1].map((node) => ({ ...fault, node }));
    const args = { qps: 2, rounds: 6 };
    const { report } = await runPrograms(programsOf('mixture', 'polling', args), roce('v2', { faults }));
    expectBalanced(report);
    expect(report.faults!.reduce((sum, { fired }) => sum + fired, 0)).toBeGreaterThan(3);
  });

  it('shows in its report of the cable the effects of faults on packets', async () => {
    const some = { node: 0, only: 'requests', shots: 2 } as const;
    const faults = [
      { ...some, packet: 'lost', nth: '2-' } as const,
      { ...some, packet: 'corrupted', nth: '9-' } as const,
      // Under a right FCS, and still a packet of its queue pair.
      { ...some, packet: 'corrupted', crc: 'icrc', where: 'payload', nth: '30-' } as const,
      { ...some, packet: 'duplicated', nth: '40-' } as const,
    ];
    const { report } = await runPrograms(
      programsOf('mixture', 'polling', { qps: 2, rounds: 6 }),
      roce('v2', { faults }),
    );
    expect(report.faults!.map(({ fired }) => fired)).toEqual([2, 2, 2, 2]);
    expect(report.wire[0]).toMatchObject({ lost: 2, corrupted: 4, duplicated: 2, dropped: 0 });
    expect(report.wire[1]).toMatchObject({ corrupted: 0, dropped: 0 });
    expect(report.wire[1]).not.toHaveProperty('lost');
    expectBalanced(report);
  });

  it.each([
    ['lost', [{ packet: 'lost', node: 1, only: 'responses', chance: 0.3 }]],
    ['doubled', [{ packet: 'duplicated', node: 1, only: 'responses', chance: 0.3 }]],
  ] as const)('balances where NAKs are %s', async (_what, more) => {
    const faults = [{ packet: 'lost', node: 0, only: 'requests', chance: 0.1 } as const, ...more];
    const args = { qps: 2, rounds: 6 };
    const { report } = await runPrograms(programsOf('mixture', 'polling', args), roce('v2', { faults }));
    const naks = report.nodes.map(({ hca }) => [
      hca.transport['sequenceNakSent'],
      hca.transport['sequenceNakReceived'],
    ]);
    expect(naks[1]![0]).not.toBe(naks[0]![1]);
    expectBalanced(report);
  });

  it('balances while a frame is held back, and when it is lost with the link', async () => {
    const faults = [{ packet: 'reordered', node: 0, nth: 1, by: 250, delay: '30s' } as const];
    await using machine = await smallMachine(roce('v2', { faults }));
    for (const program of programsOf('roce', 'oneByOne', 64)) await machine.load(program);
    await machine.run();
    const held = await machine.report();
    // The first frame is ARP, which is repeated after a second.
    expect(held.nodes[0]!.hca.ethernet!.transmitted).toMatchObject({ heldBackFrames: 1 });
    expect(held.nodes[0]!.hca.ethernet!.transmitted).not.toHaveProperty('lostFrames');
    expectBalanced(held);
    await machine.removeDrivers();
    await machine.run();
    const lost = await machine.report();
    expect(lost.nodes[0]!.hca.ethernet!.transmitted).toMatchObject({ heldBackFrames: 1, lostFrames: 1 });
    expectBalanced(lost);
  });

  it('gives the same report in every partition', async () => {
    const url = new URL('../examples/rdma-cm-echo.ts', import.meta.url);
    const programs = ['client', 'server'].map((exportName, node) => ({ node, run: { url, exportName } }));
    const reports = await Promise.all(
      (['single', 'per-device'] as const).map((partition) =>
        runPrograms(programs, roce('v2', { partition })),
      ),
    );
    expect(bytesOf(reports[1]!.report)).toBe(bytesOf(reports[0]!.report));
  });

  it('has packets of 4096 bytes in frames of 4200', async () => {
    const { near, far, frames, report } = await writes('v2', { 'ethernet.mtuBytes': 4200 }, 5000);
    expect([near.port['activeMtu'], far.isRight]).toEqual([5, true]);
    // Headers as above, RETH in the first, and no FCS: 14, 28, 12, 16, 4096, 4 bytes.
    expect(Math.max(...frames.map(({ bytes }) => bytes.length))).toBe(4170);
    expectBalanced(report);
  });

  it('rejects addresses that do not exist on Ethernet', async () => {
    const { results } = await runPrograms([programOf('roce', 'refused', 0)], roce('v2'));
    expect(results).toEqual([
      { withoutGid: 'EINVAL', emptyPlace: 'EINVAL', stranger: 'ETIMEDOUT', connection: 'EINVAL' },
    ]);
  });

  it.each([
    [{ 'hca.capability.roce': 'none' }, /hca.capability.roce is "none", expected v1 or v2/],
    [{ 'ethernet.mtuBytes': 351 }, /ethernet.mtuBytes is 351, expected at least 352/],
    [{ 'hca.capability.linkLayer': 'infiniband' }, /hca.capability.roce is "v2", expected none/],
  ])('is rejected with %o', async (set, words) => {
    await expect(smallMachine(roce('v2', { set }))).rejects.toThrow(words);
  });
});
