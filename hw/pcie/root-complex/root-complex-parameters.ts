/** Parameters of the root complex. Profiles name them `pcie.rootComplex.*`. */
import {
  assertOneOf,
  type ConfigOf,
  ConfigurationError,
  choice,
  number,
  type ParameterTable,
  powerOfTwo,
} from '../../../base/index.ts';
import type { LinkConfig, LinkEndConfig } from '../link/index.ts';

export const rootComplexParameters = {
  clockMHz: number(1000, 'MHz', [100, 10_000], 'estimate', 'clock of the root complex'),
  writeLatencyPs: number(
    80_000,
    'ps',
    [0, 100_000_000],
    'estimate',
    'from the arrival of a device write to its effect in memory (or of an interrupt message to its delivery)',
  ),
  readLatencyPs: number(
    170_000,
    'ps',
    [0, 100_000_000],
    'measurements.csv I-002a: idle 64 B read 436 ns, less two link latencies and serialisation',
    'from the arrival of a device read to its first completion; at least writeLatencyPs',
  ),
  outstandingReadCount: number(48, 'reads', [1, 127], 'estimate', 'device reads worked on at a time'),
  readCompletionBoundaryBytes: powerOfTwo(
    64,
    'bytes',
    [64, 128],
    'PCIe base specification 3.1, 2.3.1.1: 64 or 128 for a root complex',
    'completions of one read end at multiples of this (RCB)',
  ),
  completionCombineBytes: powerOfTwo(
    256,
    'bytes',
    [64, 4096],
    'estimate: current root complexes fill MPS',
    'largest completion it puts together, if MPS allows',
  ),
  completionOrder: choice(
    'inOrder',
    ['inOrder', 'shuffled'],
    'PCIe base specification 3.1, 2.4.1: completions of different requests may pass each other',
    'order in which different reads are answered',
  ),
  completionJitterPs: number(
    100_000,
    'ps',
    [0, 100_000_000],
    'estimate',
    'shuffled order: largest random delay added to a read',
  ),
  seed: number(1, 'seed', [1, 2 ** 31 - 1], 'choice', 'shuffled order: seed of the delays'),
  cpuStoreLatencyPs: number(
    50_000,
    'ps',
    [0, 10_000_000],
    'estimate',
    'from a core (or its write-combining buffer) to the root complex: stores, loads, configuration accesses',
  ),
  cpuLoadReturnLatencyPs: number(
    50_000,
    'ps',
    [0, 10_000_000],
    'estimate',
    'from the arrival of a completion back to the core that waits',
  ),
  cpuEgressTlps: number(8, 'TLPs', [1, 256], 'estimate', 'requests of one core the root complex holds'),
  cpuStoreBytesMax: powerOfTwo(
    64,
    'bytes',
    [64, 64],
    'Intel SDM vol. 3A 11.3.1: a write-combining buffer is one cache line',
    'largest store of a core that becomes one TLP: a full write-combining buffer leaves as one',
  ),
  cpuTagCount: number(
    32,
    'tags',
    [1, 256],
    'PCIe base specification 3.1, 2.2.6.2: 5-bit tags',
    'loads in flight',
  ),
  completionTimeoutPs: number(
    50_000_000_000,
    'ps',
    [50_000_000, 64_000_000_000_000],
    'PCIe base specification 3.1, 7.8.15: 50 us to 50 ms by default',
    'a load without a completion for so long reads all ones',
  ),
  messageWindowAddress: number(
    0xfee0_0000,
    'address',
    [0xfee0_0000, 0xfee0_0000],
    'Intel SDM volume 3A, 10.11.1: fixed by the architecture',
    'writes of a device to this 1 MiB are interrupt messages; memory under it is not reachable by devices',
  ),
  deviceBus: number(
    1,
    'bus',
    [1, 255],
    'choice',
    'bus number behind the root port: the device is function 0 of device 0',
  ),
} satisfies ParameterTable;

export type RootComplexConfig = ConfigOf<typeof rootComplexParameters>;

export const MESSAGE_WINDOW_BYTES = 0x10_0000;

/**
 * Rejects parameters that could reorder or lose requests.
 * @throws ConfigurationError naming the parameter
 */
export function checkRootComplexConfig(
  config: RootComplexConfig,
  link: LinkConfig,
  end: LinkEndConfig,
): void {
  if (config.readLatencyPs < config.writeLatencyPs) {
    throw new ConfigurationError(
      'pcie.rootComplex.readLatencyPs',
      config.readLatencyPs,
      `at least writeLatencyPs (${config.writeLatencyPs}): a read must see the writes sent before it`,
    );
  }
  assertOneOf('pcie.rootComplex.readCompletionBoundaryBytes', config.readCompletionBoundaryBytes, [64, 128]);
  const completionBytes = Math.min(config.completionCombineBytes, link.maxPayloadBytes);
  if (completionBytes < config.readCompletionBoundaryBytes) {
    throw new ConfigurationError(
      'pcie.rootComplex.completionCombineBytes',
      config.completionCombineBytes,
      `at least the read completion boundary (${config.readCompletionBoundaryBytes})`,
    );
  }
  for (const name of ['postedHeaders', 'nonPostedHeaders'] as const) {
    if (end[name] === 0) {
      throw new ConfigurationError(
        `pcie.rootPort.${name}`,
        0,
        'a finite number: the root complex holds requests in buffers',
      );
    }
  }
}
