/**
 * Time counts from epochs (sim/epoch.ts): a new one moves every instant and every edge that any block keeps. Here epochs are
 * short: thousands begin during all kinds of work, at every phase of the clocks, without any visible effect.
 */
import { describe, expect, it, vi } from 'vitest';
import type { MachineOptions } from '../machine/machine.ts';
import type { ProgramOptions } from '../machine/program.ts';
import { bytesOf, type Outcome, programOf, programsOf, runPrograms } from './machines.ts';

vi.setConfig({ testTimeout: 240_000 });

const args = { qps: 2, rounds: 2 };
const mixture = (): ProgramOptions[] => [
  ...programsOf('mixture', 'polling', args),
  ...programsOf('mixture', 'sleeping', args),
];

/** The complete result of a run: the report and the programs' return values. */
const factsOf = ({ report, results }: Outcome): [string, unknown] => [bytesOf(report), results];

/** Lengths of an epoch that are neither whole microseconds nor whole cycles of any clock. */
const lengthsPs = [3_000_001, 7_654_321, 100_000_123];

/** Under loss: TCP's timers, the NIC's interrupt moderation and rings. */
const streams = (): ProgramOptions[] =>
  [0, 1].map((node) =>
    programOf('traditional', 'stream', node, {
      args: { bytes: 60_000, port: 80, callBytes: 8_192, from: 0 },
    }),
  );
const lossy = {
  'machine.adapter': 'nic',
  'ethernet.lossPerMillion': 30_000,
  'net.stack.retransmitMinUs': 1_000,
  'net.stack.retransmitInitialUs': 5_000,
};

/** Connections of cards: handshakes, all messages, timers of TCP. */
const iwarp = {
  'hca.capability.linkLayer': 'ethernet',
  'hca.capability.transport': 'iwarp',
  'hca.iwarp.retransmitMinUs': 1_000,
  'hca.iwarp.retransmitInitialUs': 5_000,
};
const rdmap = (): ProgramOptions[] => programsOf('iwarp', 'everyVerb', { sizes: [0, 1441, 20_000] });

const scenarios: Readonly<Record<string, readonly [() => ProgramOptions[], MachineOptions]>> = {
  'polling and sleeping programs': [mixture, {}],
  'programs that poll, with instants shuffled': [mixture, { shuffleSeed: 7 }],
  'packets lost and sent again': [
    () => [programOf('faulty', 'sender', 0), programOf('faulty', 'receiver', 1)],
    { faults: [{ packet: 'corrupted', nth: '20-200' }] },
  ],
  'regions paged on demand': [
    () => programsOf('on-demand', 'everyOperation', { sender: true, receiver: true }),
    {},
  ],
  'QPs with rates': [
    mixture,
    {
      set: {
        'hca.capability.linkLayer': 'ethernet',
        'hca.capability.roce': 'v2',
        'hca.congestion.algorithm': 'dcqcn',
        'hca.congestion.minTimeBetweenCnpsUs': 5,
      },
      faults: [{ packet: 'congested', chance: '20%' }],
    },
  ],
  'QPs with a congestion control table': [
    mixture,
    { set: { 'hca.congestion.algorithm': 'cct' }, faults: [{ packet: 'congested', chance: '20%' }] },
  ],
  'sockets over a NIC that loses frames': [streams, { set: lossy }],
  iWARP: [rdmap, { set: iwarp }],
  'two programs of a host over iWARP': [
    () => [
      programOf('iwarp-loopback', 'client', 0, { args: { sizes: [1441] } }),
      programOf('iwarp-loopback', 'server', 0, { args: { sizes: [1441] } }),
    ],
    { set: iwarp },
  ],
  'iWARP with markers, packing and losses': [
    rdmap,
    {
      set: {
        ...iwarp,
        'driver.mpaMarkers': true,
        'hca.iwarp.earlySegments': 16,
        'hca.iwarp.packsFpdus': true,
        'driver.tcpCongestion': 'cubic',
        'driver.tcpTimestamps': true,
      },
      faults: [{ packet: 'lost', chance: '5%' }],
    },
  ],
};

describe.each(Object.entries(scenarios))('a run of %s', (_name, [programs, options]) => {
  let whole: Promise<Outcome> | undefined;
  it.each(lengthsPs)('is the same, byte for byte, with epochs of %i ps', async (epochPs) => {
    whole ??= runPrograms(programs(), options);
    const cut = await runPrograms(programs(), { ...options, epochPs });
    expect(factsOf(cut)).toEqual(factsOf(await whole));
  });
});

it('a run in workers is the same with epochs', async () => {
  const cut = await runPrograms(mixture(), { partition: 'per-device', epochPs: 40_000_009 });
  expect(factsOf(cut)).toEqual(factsOf(await runPrograms(mixture())));
});
