/** Notes on parameters that were set but cannot have had an effect. */

import { psPerSecond } from '../../base/index.ts';
import type { PerfRow } from '../../experiments/runs/perf-run.ts';
import type { BandwidthRates } from '../../experiments/workloads/index.ts';
import { bytesText, countText } from '../../explain/text/format.ts';
import type { MachineOptions } from '../../machine/index.ts';
import { configurationOf, type MachineConfig, type ParameterValue } from '../../machine/profile/index.ts';

/** Parameters of cache sizes, and the name of each cache in a report. */
const cacheOf: Readonly<Record<string, string>> = {
  'hca.mttCacheLines': 'mtt',
  'hca.mptCacheEntries': 'mpt',
  'hca.qpcCacheEntries': 'qpc',
  'hca.sendContextEntries': 'qpc',
  'hca.cqcCacheEntries': 'cqc',
  'hca.srqcCacheEntries': 'srqc',
};

/** Parameters of parts that the machine of a test may lack, by path prefix, and the name of the part. */
function absentPart({ hca, pcie }: MachineConfig, path: string): string | undefined {
  const { linkLayer, transport } = hca.capability;
  const isIwarp = transport === 'iwarp';
  const absent: readonly (readonly [RegExp, boolean, string])[] = [
    [/^ethernet\./, linkLayer === 'infiniband', 'the cable is of InfiniBand (hca.capability.linkLayer)'],
    // The packet format is not a property of the cable.
    [
      /^wire\.(?!packetForm$)/,
      linkLayer === 'ethernet',
      'the cable is of Ethernet (hca.capability.linkLayer)',
    ],
    [
      /^(hca\.iwarp\.|driver\.(mpa|tcp)[A-Z])/,
      !isIwarp,
      'the transport is not iWARP (hca.capability.transport)',
    ],
    [
      /^hca\.(lossRecovery|readTranslationsAhead|recoveryWindowPackets|reorderBufferPackets|retransmit[A-Z]\w*|capability\.staticRates)$/,
      isIwarp,
      'the transport is iWARP (hca.capability.transport)',
    ],
    [
      /^hca\.(recoveryWindowPackets|reorderBufferPackets|retransmit[A-Z]\w*)$/,
      hca.lossRecovery === 'go-back-n',
      'what was lost is repeated by go-back-N (hca.lossRecovery)',
    ],
    [/^messaging\./, true, 'tests speak the verbs; hca cutoff sends messages'],
    [/^(net|nic|systemDma)\./, true, 'tests go by the HCA; hca compare has the traditional path'],
    [/^pcie\.iommu\.(?!isEnabled$)/, !pcie.iommu.isEnabled, 'there is no IOMMU (pcie.iommu.isEnabled)'],
  ];
  return absent.find(([paths, isAbsent]) => isAbsent && paths.test(path))?.[2];
}

/**
 * Parameters set to the value they have anyway, parameters of absent parts, and sizes of caches that this test does not
 * fill: if no line was evicted, and fewer were filled than exist with and without the change, the size made no
 * difference.
 */
export function parameterNotes(machine: MachineOptions, rows: readonly PerfRow[]): string[] {
  const profile = machine.profile === undefined ? {} : { profile: machine.profile };
  const plain = configurationOf(profile);
  const config = configurationOf(machine);
  return Object.entries(machine.set ?? {}).flatMap(([path, value]) => {
    const usual = valueAt(plain, path);
    if (String(usual) === String(value))
      return [`--set ${path}=${value} has no effect: it is the value of the profile.`];
    const absent = absentPart(config, path);
    if (absent !== undefined) return [`--set ${path}=${value} has no effect: ${absent}.`];
    const cache = cacheOf[path];
    // Entries filled during a warm-up are not counted.
    if (cache === undefined || rows.some(({ args }) => args.warmupIterations !== undefined)) return [];
    const filled = Math.max(...rows.flatMap(({ caches }) => caches.map((each) => each[cache]?.misses ?? 0)));
    const isFull = rows.some(({ caches }) => caches.some((each) => (each[cache]?.evictions ?? 0) > 0));
    if (isFull || filled > Math.min(Number(usual), Number(value))) return [];
    return [
      `--set ${path}=${value} should have no effect: this test fills ${countText(filled)} entries and evicts none; a larger --region fills more.`,
    ];
  });
}

/** Regions that repeat a stretch of memory: the figures that represent the whole region, and those that do not. */
export const stretchNotes = (rows: readonly PerfRow[]): string[] =>
  rows.flatMap(({ args: { region } }) =>
    region?.stretchBytes === undefined
      ? []
      : [
          `The region of ${bytesText(region.bytes)} exceeds the memory of a host: ${bytesText(region.stretchBytes)} repeat under its addresses.`,
          '  Every page has its own address and translation; bytes at places that share memory overwrite each other.',
        ],
  );

/** Share of the bytes moved from which on those that TCP may hold are named. */
const muchHeld = 0.01;

/**
 * Over iWARP a WRITE or SEND completes when TCP has it. The measured time of a bandwidth test continues until the peer
 * has all messages; that of one message under an offered load does not, unless it is answered.
 */
export function arrivalNotes(machine: MachineOptions, rows: readonly PerfRow[]): string[] {
  const { capability, iwarp } = configurationOf(machine).hca;
  if (capability.transport !== 'iwarp') return [];
  return rows.flatMap(({ args, result, load }) => {
    const { isLatency, verb, qpCount, iterations, isEchoed } = args;
    // A READ or an atomic completes with its response.
    if (verb === 'read' || verb === 'atomic') return [];
    if (isLatency)
      return [
        `${args.sizeBytes} bytes: over iWARP a message completes when TCP has it: the way to the peer is in the`,
        '  latency, but not in the stages until the completion.',
      ];
    if (load !== undefined && isEchoed !== true)
      return [
        `${args.sizeBytes} bytes: over iWARP a message completes when TCP has it, and its time ends there;`,
        '  with --workload …,echo=true it ends when the answer has arrived.',
      ];
    const { averageBytesPerSecond, durationPs } = result as BandwidthRates;
    const ways = args.isBidirectional === true ? 2 : 1;
    const movedBytes = (averageBytesPerSecond * durationPs) / psPerSecond / ways;
    const heldBytes = Math.min(iwarp.retransmissionBytes, iwarp.connectionBytes * qpCount);
    if (isEchoed === true || heldBytes < muchHeld * movedBytes) return [];
    const enough = Math.floor(((heldBytes / muchHeld) * iterations) / movedBytes) + 1;
    return [
      `${args.sizeBytes} bytes: over iWARP a message completes when TCP has it, and TCP may hold`,
      `  ${countText(Math.min(heldBytes, movedBytes))} of the ${countText(movedBytes)} bytes sent. The time ends when the peer has all of them;`,
      `  perftest ends it with the last completion. From -n ${enough} on it is less than 1 %.`,
    ];
  });
}

function valueAt(config: MachineConfig, path: string): ParameterValue | undefined {
  let node: unknown = config;
  for (const name of path.split('.')) node = (node as Readonly<Record<string, unknown>> | undefined)?.[name];
  return node as ParameterValue | undefined;
}
