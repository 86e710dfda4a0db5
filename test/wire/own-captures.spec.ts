/**
 * Captures of our machines (`--pcap`), read by the independent reader (analyser/independent): all opcodes of all transports on
 * both networks, with and without a GRH, including lost and repeated packets. No header contradicts another, and every CRC is
 * right.
 */
import { describe, expect, it, vi } from 'vitest';
import { readCapture } from '../../analyser/capture/index.ts';
import { errorsOf, headerOf, type PacketForm, readCaptured } from '../../analyser/independent/index.ts';
import type { Machine } from '../../machine/machine.ts';
import type { ProgramOptions } from '../../machine/program.ts';
import { opcodeTable } from '../../wire/index.ts';
import { programOf, programsOf, smallMachine } from '../machines.ts';
import type { LinuxScenario } from '../programs/linux-scenario.ts';
import { packetOf } from './independent.ts';
import { stepOf } from './linux-scenarios.ts';

vi.setConfig({ testTimeout: 120_000 });

/** Every form of every operation: one packet and several, with every pad. */
const steps = {
  rc:
    'send:0 send:1 send:2 send:3 send:10:i send:3001 send:3000:i send:64:V send:3000:V write:0 write:10 write:10:i write:3000 ' +
    'write:3003:i read:1 read:2048 read:4000 fadd:5 cswp:0',
  uc: 'send:10 send:10:i send:3001 send:3000:i write:10 write:10:i write:3002 write:3000:i',
  ud: 'send:1 send:10 send:11:i <send:77',
} as const;
type Transport = keyof typeof steps;

function scenarioOf(transport: Transport, sgidIndex: number): ProgramOptions[] {
  const scenario: LinuxScenario = {
    ...{ transport, sgidIndex, mtu: 3, psns: [0xff_fffd, 256], readsMax: 4, limitMs: 5 },
    ...{ hopLimit: 64, trafficClass: 0x69, flowLabel: 0xabcde, serverGives: true },
    ...{ timeoutCode: 5, retryCount: 7, rnrRetryCount: 7, rnrTimerCode: 1 },
    steps: steps[transport].split(' ').map(stepOf),
  };
  return programsOf('linux-scenario', 'linux', scenario);
}

interface Way {
  readonly form: PacketForm;
  readonly set: Readonly<Record<string, string>>;
  readonly sgidIndex: number;
}

const ethernet = (roce: 'v1' | 'v2') => ({
  'hca.capability.linkLayer': 'ethernet',
  'hca.capability.roce': roce,
});
const ways: Readonly<Record<string, Way>> = {
  'InfiniBand with a GRH': { form: 'global', set: {}, sgidIndex: 0 },
  'InfiniBand with a GRH, bytes on the cable': {
    form: 'global',
    set: { 'wire.packetForm': 'bytes' },
    sgidIndex: 0,
  },
  'RoCE v1': { form: 'roce1', set: ethernet('v1'), sgidIndex: 1 },
  'RoCE v2 over IPv4': { form: 'roce2Ipv4', set: ethernet('v2'), sgidIndex: 3 },
  'RoCE v2 over IPv6': { form: 'roce2Ipv6', set: ethernet('v2'), sgidIndex: 1 },
};

interface Seen {
  readonly name: string;
  readonly form: PacketForm;
  readonly isMarked: boolean;
  readonly note: string;
  readonly errors: readonly string[];
}

/** All packets at both ends. */
async function packetsOf(
  programs: readonly ProgramOptions[],
  options: Parameters<typeof smallMachine>[0],
): Promise<Seen[]> {
  const capture = { ends: [{ node: 0 }, { node: 1 }], sizeBytes: 2 ** 26 };
  await using machine: Machine = await smallMachine({ ...options, analysis: { capture } });
  for (const program of programs) await machine.load(program);
  await machine.run();
  const { interfaces, frames } = readCapture((await machine.capture())!);
  return frames.flatMap(({ bytes, comment, interface: at }) => {
    const read = readCaptured(interfaces[at]!.linkType, bytes);
    if (read === undefined) return [];
    const packet = packetOf(read);
    const bth = headerOf(packet, 'BTH')!.numbers;
    return [
      {
        name: packet.operation!.name,
        form: packet.form,
        isMarked:
          bth['fecn'] === 1 ||
          headerOf(packet, 'IPV4')?.numbers['ecn'] === 3 ||
          headerOf(packet, 'IPV6')?.numbers['ecn'] === 3,
        note: comment,
        errors: errorsOf(packet),
      },
    ];
  });
}

const wrongOf = (seen: readonly Seen[]): Seen[] => seen.filter(({ errors }) => errors.length > 0);

const all = Object.keys(ways).flatMap((name) =>
  (Object.keys(steps) as Transport[]).map((transport) => [name, transport] as const),
);

describe('the packets that our machines write into captures', () => {
  it.each(all)('IBTA 7.8: are right in every opcode and byte: %s, %s', async (name, transport) => {
    const { form, set, sgidIndex } = ways[name]!;
    const service = transport.toUpperCase();
    const faults =
      transport === 'ud'
        ? [{ packet: 'congested', nth: 2 }]
        : [
            { packet: 'lost', opcode: `${service}_RDMA_WRITE_MIDDLE`, nth: 1 },
            { packet: 'congested', nth: '3-9' },
          ];
    const isMarkable = form !== 'roce1';
    const seen = await packetsOf(scenarioOf(transport, sgidIndex), {
      set,
      faults: isMarkable ? faults : faults.filter(({ packet }) => packet !== 'congested'),
    });
    expect(wrongOf(seen)).toEqual([]);
    expect(new Set(seen.map((packet) => packet.form))).toEqual(new Set([form]));
    expect(seen.some(({ isMarked }) => isMarked)).toBe(isMarkable);
    const sent = new Set(seen.map((packet) => packet.name));
    const meant = opcodeTable.filter((row) => row.service === service && !row.name.includes('MASKED'));
    expect(meant.filter((row) => !sent.has(row.name)).map((row) => row.name)).toEqual([]);
  });

  it('IBTA A14: are right for extended reliable connections', async () => {
    const seen = await packetsOf(
      [
        programOf('extended', 'sender', 0),
        programOf('extended', 'owner', 1),
        programOf('extended', 'guest', 1),
      ],
      {},
    );
    expect(wrongOf(seen)).toEqual([]);
    expect(seen.filter((packet) => packet.name.startsWith('XRC_')).length).toBeGreaterThan(20);
  });

  it.each(['fields', 'bytes'])(
    'IBTA 7.8: are right without a GRH, except those damaged by faults, in the form of %s',
    async (form) => {
      const programs = [
        programOf('operations', 'provoker', 0),
        programOf('operations', 'partner', 1),
        ...programsOf('mixture', 'polling', { qps: 2, rounds: 2 }),
      ];
      const faults = [
        { packet: 'lost', nth: '20-22' },
        { packet: 'corrupted', nth: '60-61' },
        { packet: 'corrupted', nth: 70, crc: 'icrc' },
        { packet: 'duplicated', nth: 90 },
      ];
      const seen = await packetsOf(programs, { set: { 'wire.packetForm': form }, faults });
      const damaged = seen.filter(({ note }) => note === 'damaged on its way by a fault');
      expect(damaged).toHaveLength(3);
      expect(wrongOf(seen)).toEqual(damaged);
      expect(damaged.filter(({ errors }) => errors.some((error) => error.startsWith('VCRC')))).toHaveLength(
        2,
      );
      expect(new Set(seen.map((packet) => packet.form))).toEqual(new Set(['local']));
      expect(new Set(seen.map((packet) => packet.name)).size).toBeGreaterThan(15);
    },
  );
});
