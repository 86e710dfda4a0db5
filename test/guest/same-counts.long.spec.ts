/**
 * The same programs in a guest of QEMU (amd64) and in a Linux of this process (i386), both with Debian's stock kernel
 * 6.1 and one processor. The adapter counts the same in both but for the counters below, each of which differs for one
 * of these causes:
 *
 *     width           A CQ is armed by one store of 64 bits or by two of 32 (linux/mlx4/doorbell.h). BlueFlame is filled by
 *                     words of 64 or of 32 bits, and a line of it is a TLP or several as the write-combining buffer is
 *                     emptied.
 *     speed           How often a program loads the command register until it is free, and how many events of commands
 *                     one interrupt serves. The driver checks the error buffer every 5 s of the guest's clock.
 *     layout          mlx4_ib gives a region the largest pages that its memory has. The device reads as many translation
 *                     entries.
 *     QEMU            It answers most configuration reads from a copy: the header, BARs, the capability of MSI-X.
 *
 * The tests of single programs name further ones. Translation entries that the driver writes are stores to the guest's
 * memory, so only those are seen that the device reads.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import {
  type CountedRun,
  countedRun,
  type GuestKind,
  type ProgramCounts,
  type TracedCommand,
} from './counted-run.ts';
import { insideBootTimeoutMs, reasonAgainstInside } from './inside-suite.ts';
import { reasonAgainst } from './suite.ts';

const both = (side: string): string => `pair '${side}' '${side} localhost'`;
/** Messages of a ping-pong in either direction, and requests of perftest's clients. */
const [iterations, requests] = [50, 100];
const pingPong = (kind: string, sizeBytes: number, more = ''): string =>
  both(`ibv_${kind}_pingpong -g 0 -n ${iterations} -s ${sizeBytes}${more}`);
const perftest = (kind: string, sizeBytes: number): string =>
  both(`ib_${kind} -F -n ${requests} -s ${sizeBytes}`);

const query = 'ibv_devinfo -v >/dev/null';
/** Each side posts a message when it has received one. */
const polling = [
  ...[pingPong('rc', 100), pingPong('rc', 4096), pingPong('rc', 1024 ** 2)],
  ...[pingPong('uc', 4096), pingPong('ud', 1024)],
];
const byEvents = pingPong('rc', 4096, ' -e');
/** Posts of 128 bytes: of the payload of 64 bytes and what precedes it. */
const inline = [perftest('write_lat', 64), perftest('send_lat', 64)];
/** Posts many requests before the first has completed. */
const ahead = [perftest('write_bw', 65536), perftest('read_bw', 65536)];
const shared = pingPong('srq', 4096);
const programs = [query, ...polling, byEvents, ...inline, ...ahead, shared];

const bySpeed = [
  ...['loads.hcr', 'loads.catastrophicBuffer', 'toHost.register', 'toDevice.register'],
  ...['interrupts', 'toHost.msix', 'doorbell.eventQueue', 'stores.eqDoorbell', 'toDevice.doorbell'],
];
const byWidth = ['stores.cqArm', 'stores.blueFlame', 'toDevice.blueFlame'];
const byLayout = ['toHost.translation', 'toDevice.translation'];
const differing = new Set([...bySpeed, ...byWidth, ...byLayout]);

/** The counters that differ and that no cause of all programs explains. */
const unexplained = (
  { counts }: ProgramCounts,
  other: ProgramCounts,
  further: readonly string[] = [],
): string[] =>
  [...new Set([...Object.keys(counts), ...Object.keys(other.counts)])]
    .filter((name) => !differing.has(name) && !further.includes(name))
    .filter((name) => counts[name] !== other.counts[name])
    .map((name) => `${name}: ${counts[name] ?? 0} in QEMU, ${other.counts[name] ?? 0} inside`);

const countOf = ({ counts }: Pick<ProgramCounts, 'counts'>, name: string): number => counts[name] ?? 0;
/** Commands that the device completed. */
const commandCount = ({ counts }: Pick<ProgramCounts, 'counts'>): number =>
  Object.entries(counts).reduce((sum, [name, count]) => sum + (name.startsWith('command.') ? count : 0), 0);

/** Lines of eight translation entries (8 bytes each, PCIe reads of 64) of the regions that a program registered. */
const regionLines = ({ commands }: ProgramCounts): number =>
  commands
    .filter(({ name }) => name === 'SW2HW_MPT')
    .map(({ fields }) => Number(fields['in MPT.lengthBytes']) / 2 ** Number(fields['in MPT.logPageSize']) / 8)
    .reduce((sum, lines) => sum + Math.ceil(lines), 0);

/** Names of the fields in which two lists of commands differ. */
const differingFields = (left: readonly TracedCommand[], right: readonly TracedCommand[]): string[] => [
  ...new Set(
    left.flatMap(({ name, fields }, index) => {
      const other = right[index]!.fields;
      return Object.keys({ ...fields, ...other })
        .filter((field) => fields[field] !== other[field])
        .map((field) => `${name} ${field.replace(/chunk \d+/, 'chunk')}`);
    }),
  ),
];

describe('a stock guest in QEMU and one in this process', () => {
  const runs = new Map<GuestKind, CountedRun>();
  const of = (kind: GuestKind, program: string): ProgramCounts => runs.get(kind)!.programs.get(program)!;
  const pairOf = (program: string): [ProgramCounts, ProgramCounts] => [
    of('qemu', program),
    of('inside', program),
  ];

  beforeAll(async () => {
    expect(await reasonAgainst('debian')).toBeUndefined();
    expect(await reasonAgainstInside('debian')).toBeUndefined();
    runs.set('inside', await countedRun('inside', programs));
    runs.set('qemu', await countedRun('qemu', programs));
  }, 2 * insideBootTimeoutMs);

  it('load the drivers by the same commands, in the same order, with the same modifiers and contents', () => {
    const [qemu, inside] = pairOf('load');
    const ofQemu = ['toHost.config', 'toDevice.config'];
    expect(unexplained(qemu, inside, ofQemu)).toEqual([]);
    expect(qemu.commands).toHaveLength(commandCount(qemu));
    expect(inside.commands.map(({ summary }) => summary)).toEqual(
      qemu.commands.map(({ summary }) => summary),
    );
    // Addresses of memory; and the size of cache lines, which a kernel of 32 bits takes for 32 bytes on a processor
    // without CLFLUSH.
    expect(differingFields(qemu.commands, inside.commands).toSorted()).toEqual([
      'INIT_HCA in INIT_HCA.logCacheLineMinus4',
      'MAP_FA in chunk.physicalAddress',
      'MAP_ICM in chunk.physicalAddress',
      'MAP_ICM_AUX in chunk.physicalAddress',
      'QUERY_HCA out INIT_HCA.logCacheLineMinus4',
      'RST2INIT_QP in QP mailbox.context.doorbellRecordAddress',
      'SW2HW_CQ in CQC.doorbellRecordAddress',
    ]);
  });

  it('query the device by the same commands, and take one interrupt for each', () => {
    const [qemu, inside] = pairOf(query);
    expect(unexplained(qemu, inside)).toEqual([]);
    expect(inside.commands).toEqual(
      qemu.commands.map((command, index) => ({ ...command, atPs: inside.commands[index]!.atPs })),
    );
    for (const each of [qemu, inside]) {
      expect(countOf(each, 'command.MAD_IFC')).toBe(commandCount(each));
      expect(countOf(each, 'toHost.eqe')).toBe(commandCount(each));
      expect(countOf(each, 'interrupts')).toBe(commandCount(each));
    }
  });

  it.each(polling)('cause the same commands, posts, completions and DMA by %s', (program) => {
    const [qemu, inside] = pairOf(program);
    expect(unexplained(qemu, inside)).toEqual([]);
    for (const each of [qemu, inside]) {
      // A doorbell for each message, and a CQE at either end of it; a region for each side.
      expect(countOf(each, 'doorbell.send')).toBe(2 * iterations);
      expect(countOf(each, 'toHost.cqe')).toBe(2 * 2 * iterations);
      expect(countOf(each, 'command.SW2HW_MPT')).toBe(2);
      expect(countOf(each, 'command.HW2SW_MPT')).toBe(2);
      // Programs that poll cause no event: each is of a command.
      expect(countOf(each, 'toHost.eqe')).toBe(commandCount(each));
    }
    const [first, second] = [qemu, inside].map(
      (each) => countOf(each, 'toHost.translation') - regionLines(each),
    );
    expect(first).toBe(second);
  });

  it('arm a CQ once for each event, and once more when they begin', () => {
    // How many completions one event reports depends on the program's speed; so do the pages of the event queue that
    // are written.
    const [qemu, inside] = pairOf(byEvents);
    expect(unexplained(qemu, inside, ['toHost.eqe', 'doorbell.arm'])).toEqual([]);
    for (const each of [qemu, inside]) {
      const events = countOf(each, 'toHost.eqe') - commandCount(each);
      // At the end a CQ is armed, or its last event was not read.
      expect(countOf(each, 'doorbell.arm') - events).toBeGreaterThanOrEqual(0);
      expect(countOf(each, 'doorbell.arm') - events).toBeLessThanOrEqual(2);
      expect(events).toBeGreaterThanOrEqual(2 * iterations);
      expect(events).toBeLessThanOrEqual(2 * 2 * iterations);
    }
  });

  it.each(inline)('store the same bytes to BlueFlame by %s', (program) => {
    const [qemu, inside] = pairOf(program);
    expect(unexplained(qemu, inside)).toEqual([]);
    for (const [each, wordBytes] of [
      [qemu, 8],
      [inside, 4],
    ] as const) {
      expect(countOf(each, 'doorbell.blueFlame')).toBe(2 * requests);
      expect(countOf(each, 'stores.blueFlame') * wordBytes).toBe(2 * requests * 128);
      expect(countOf(each, 'blueFlameLines') * 64).toBe(2 * requests * 128);
    }
  });

  it.each(ahead)('cause the same by %s, but for reads of several WQEs at once', (program) => {
    const [qemu, inside] = pairOf(program);
    expect(unexplained(qemu, inside, ['toHost.wqeRead', 'toDevice.wqeRead'])).toEqual([]);
    for (const each of [qemu, inside])
      expect(countOf(each, 'doorbell.send') + countOf(each, 'doorbell.blueFlame')).toBe(requests);
  });

  it('cause the same for each message of a program that ends while others are under way', () => {
    const [qemu, inside] = pairOf(shared);
    const perMessage = (each: ProgramCounts): readonly (readonly [string, number])[] =>
      [
        ...['toHost.cqe', 'toHost.payloadRead', 'toDevice.payloadRead', 'toHost.payloadWrite'],
        ...['doorbell.send', 'stores.sendDoorbell'],
        ...[
          'packets.RC_SEND_FIRST',
          'packets.RC_SEND_MIDDLE',
          'packets.RC_SEND_LAST',
          'packets.RC_ACKNOWLEDGE',
        ],
      ].map((name) => [name, countOf(each, name) / countOf(each, 'doorbell.send')]);
    expect(countOf(qemu, 'doorbell.send')).toBeGreaterThan(0);
    expect(perMessage(inside)).toEqual(perMessage(qemu));
    const names = [...perMessage(qemu).map(([name]) => name), 'toHost.wqeRead', 'toDevice.wqeRead'];
    expect(unexplained(qemu, inside, names)).toEqual([]);
  });

  it.each([
    ['qemu', 1],
    ['inside', 2],
  ] as const)('write doorbells and commands by the rules of the driver (%s)', (kind, storesOfArm) => {
    const { total, interrupts } = runs.get(kind)!;
    const counts = { counts: total };
    expect(countOf(counts, 'stores.cqArm')).toBe(storesOfArm * countOf(counts, 'doorbell.arm'));
    // The register has seven words (mlx4_cmd_post), and is loaded at least once before.
    expect(countOf(counts, 'stores.hcr')).toBe(7 * commandCount(counts));
    expect(countOf(counts, 'loads.hcr')).toBeGreaterThanOrEqual(commandCount(counts));
    // The handler arms its queue once; two queues are armed when they are made.
    expect(countOf(counts, 'doorbell.eventQueue')).toBe(countOf(counts, 'interrupts') + 2);
    expect(countOf(counts, 'stores.eqDoorbell')).toBe(countOf(counts, 'doorbell.eventQueue'));
    expect(countOf(counts, 'toHost.eqe')).toBeGreaterThanOrEqual(countOf(counts, 'interrupts'));
    expect(interrupts.map(({ guestCount }) => guestCount)).toEqual(
      interrupts.map(({ deviceCount }) => deviceCount),
    );
  });
});
