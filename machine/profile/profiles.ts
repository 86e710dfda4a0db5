/** The named profiles: each is the default profile with some parameters changed. */
import { fittedConnectx3 } from './fitted-connectx3.ts';
import type { ParameterValue } from './parameter-tree.ts';

export interface Profile {
  readonly name: string;
  readonly doc: string;
  /** Values by path; parameters that are not named have their defaults. */
  readonly values: Readonly<Record<string, ParameterValue>>;
}

export const defaultProfileName = 'connectx3-qdr';

/** As fitted for a ConnectX-3 and its hosts: reads of host memory, and their order. */
const fittedReads = Object.fromEntries(
  (['pcie.rootComplex.readLatencyPs', 'hca.readResponseLatencyCycles', 'dma.readArbitration'] as const).map(
    (path) => [path, fittedConnectx3[path]!],
  ),
);

/** T-134: one atomic follows another after 0.47 us, of which the read of its word takes 0.39. */
const atomics: Profile['values'] = { 'hca.atomicWriteBackCycles': 35 };

const connectx2: Profile['values'] = {
  'pcie.link.generation': 2,
  // H-195 to H-211: 3.27 times the delays of the standard.
  'hca.rnrTimerUnitNs': 32_687,
  // H-213 to H-225: twice 4.096 us times 2^code, and at least the value of code 16, one above its local CA ACK delay of
  // 15.
  'hca.ackTimeoutUnitNs': 8192,
  'hca.ackTimeoutCodeMin': 16,
  // H-071: one QP sends 8.8 million WRITEs per second, and 4.2 million datagrams (H-187).
  'hca.sameQpIntervalCycles': 48,
  'hca.unreliableIntervalCycles': 105,
  // H-001, H-035: a pass of 2 bytes takes 0.89 us with a switch, and 4096 bytes add 4.1 us, of which three stages that
  // take a packet whole need 3.7. The paths to and from the port are equally wide.
  'hca.transmitLatencyCycles': 16,
  'hca.receiveLatencyCycles': 16,
  'hca.transmitBytesPerCycle': 64,
  'hca.receiveBytesPerCycle': 64,
  // H-139: 27.3 Gb/s. Completions of 128 bytes are 148 on the link, and the next TLP begins in lane 0 of 8: 26.9 Gb/s.
  // H-099: with completions of 256 bytes it would be 28.9.
  'pcie.link.packetAlignmentBytes': 8,
  'pcie.rootComplex.completionCombineBytes': 128,
  ...fittedReads,
  ...atomics,
};

const connectx5: Profile['values'] = {
  // Its library, rdma-core's mlx5, posts each single request by BlueFlame.
  'driver.blueFlameForAll': true,
  // T-126: one QP reads 87.2 Gb/s in packets of 1024 bytes. The unit that keeps READs has the path of the port, and
  // takes 8 cycles more for each packet.
  'hca.readResponseBytesPerCycle': 32,
  'hca.readResponseCycles': 8,
  ...atomics,
  // The narrowest path, in a power of two bytes, that carries 100 Gb/s at the card's clock: 109.
  'hca.transmitBytesPerCycle': 32,
  ...fittedReads,
};

/** A port of Ethernet with RoCE instead of InfiniBand. */
const roceOf = (version: 'v1' | 'v2', gigabitsPerSecond: number): Profile['values'] => ({
  'hca.capability.linkLayer': 'ethernet',
  'hca.capability.roce': version,
  'ethernet.gigabitsPerSecond': gigabitsPerSecond,
});

/**
 * Estimate: an Ethernet switch port takes as long as an InfiniBand one (wire.portLatencyNs). The rest of the published
 * delay is the pipeline's.
 */
const switchPortNs = 40;

/**
 * Switches of Ethernet that cut through, by their published delay from port to port: mellanox-ethernet in
 * reference/sources.md.
 */
const cutThroughOf = (portToPortNs: number): Profile['values'] => ({
  'switch.ethernet.forwarding': 'cut-through',
  'switch.ethernet.portLatencyNs': switchPortNs,
  'switch.ethernet.latencyNs': portToPortNs - 2 * switchPortNs,
});

/**
 * Whether a profile describes a card. Others describe only Ethernet switches: with a card of InfiniBand none of their
 * values would have an effect.
 */
export const hasCard = ({ values }: Profile): boolean => {
  const paths = Object.keys(values);
  return paths.length === 0 || !paths.every((path) => path.startsWith('switch.ethernet.'));
};

export const profiles: readonly Profile[] = [
  {
    name: defaultProfileName,
    doc: 'ConnectX-3, InfiniBand 4X QDR, PCIe Gen3 x8; hosts with 2.5 GHz cores. All defaults.',
    values: {},
  },
  {
    name: 'connectx3-qdr-fitted',
    doc: 'The same card with what published measurements show of it: costs of READs, of WQE lines and of payload, gaps between messages (docs/reference/fidelity.md).',
    values: fittedConnectx3,
  },
  {
    name: 'connectx3-fdr-fitted',
    doc: 'The same on a 4X FDR cable (54.5 Gb/s of data).',
    values: { ...fittedConnectx3, 'wire.speed': 'FDR' },
  },
  {
    name: 'connectx3-fdr',
    doc: 'The same card on a 4X FDR cable (54.5 Gb/s of data).',
    values: { 'wire.speed': 'FDR' },
  },
  {
    name: 'connectx2-gen2',
    doc: 'The card before: PCIe Gen2 x8 under a 4X QDR cable, its timers, its times and its hosts (measurements.csv H-195 to H-225, measurements-second.csv H-001 to H-187).',
    values: connectx2,
  },
  {
    name: 'connectx2-10gbe',
    doc: 'The same with a port of 10 Gb/s Ethernet and RoCE v1 (measurements.csv H-262, H-264).',
    values: { ...connectx2, ...roceOf('v1', 10) },
  },
  {
    name: 'connectx3-pro-40gbe',
    doc: 'ConnectX-3 Pro with a port of 40 Gb/s Ethernet, RoCE v1 and v2, and frames of 4200 bytes, which hold packets of 4096; all other values except hca.readTranslationsAhead and hca.mttCacheWays are those fitted to the ConnectX-3.',
    values: {
      ...fittedConnectx3,
      ...roceOf('v2', 40),
      'pcie.function.deviceId': 0x1007,
      'ethernet.mtuBytes': 4200,
      // Estimates: 1.6 to 9.6 million READs per second at random places of 20 GiB (G-074 to G-081) are more than one
      // miss after the other permits, and from 8 on other limits bind; the regions of eight processes begin in one set
      // of the MTT cache.
      'hca.readTranslationsAhead': 8,
      'hca.mttCacheWays': 16,
      // 128 KiB of such frames, as for 86 of 1500 bytes.
      'ethernet.receiveFifoFrames': 31,
    },
  },
  {
    name: 'connectx5-gen3',
    doc: 'A ConnectX-5 in a slot that gives it PCIe Gen3 x8, as far as its interface is a ConnectX-3: the same HCA on a 4X EDR cable.',
    values: { ...connectx5, 'wire.speed': 'EDR' },
  },
  {
    name: 'connectx5-100gbe',
    doc: 'The same with a port of 100 Gb/s Ethernet and RoCE v2 (measurements.csv J-001 to J-003).',
    values: { ...connectx5, ...roceOf('v2', 100) },
  },
  {
    name: 'sx1036',
    doc: 'Switches of SwitchX with 40 Gb/s Ethernet (SX1036, SX6030, SX6036), which cut through: 230 ns from port to port. It has no card: join it to a profile that has, connectx3-pro-40gbe+sx1036.',
    values: cutThroughOf(230),
  },
  {
    name: 'sn2700',
    doc: 'Switches of Spectrum (SN2700, SN2100), which cut through: 300 ns from port to port. It has no card: connectx5-100gbe+sn2700.',
    values: cutThroughOf(300),
  },
  {
    name: 'connectx3-mps512',
    doc: 'The same card on a host whose root port takes payloads of 512 bytes, tuned to read requests of 4096 bytes.',
    values: {
      'pcie.link.maxPayloadBytes': 512,
      'pcie.enumeration.maxPayloadBytes': 512,
      'pcie.enumeration.maxReadRequestBytes': 4096,
      'pcie.rootComplex.completionCombineBytes': 512,
    },
  },
  {
    name: 'gen5-x16-what-if',
    doc: 'What if the same HCA sat in a Gen5 x16 slot, at 4X EDR, with MPS 512 and MRRS 4096?',
    values: {
      'pcie.link.generation': 5,
      'pcie.link.lanes': 16,
      'pcie.link.maxPayloadBytes': 512,
      'pcie.enumeration.maxPayloadBytes': 512,
      'pcie.enumeration.maxReadRequestBytes': 4096,
      'pcie.rootComplex.completionCombineBytes': 512,
      'dma.dataPathBytes': 256,
      'wire.speed': 'EDR',
    },
  },
];
