/**
 * Headroom: bytes that still arrive after a port has asked its sender to stop, for each input and lossless class of traffic.
 *
 *     longest frame of the sender + longest own frame before the PAUSE + 2 × cable × rate + ports + 64 × quanta of response
 *     + what comes during the latency of the switch, which decides after it
 *
 * Source: SONiC buffer_headroom_barefoot.lua, which follows 31B.3.7 of IEEE 802.3; the quanta are there, too. Ports are those of this model:
 * each frame passes two, in both directions.
 */
import {
  ETHERNET_FCS_BYTES,
  type EthernetConfig,
  ethernetByteTime,
  ethernetFrameBytesMax,
  ethernetLatencyPs,
  withTag,
} from '../../wire/index.ts';
import type { EthernetSwitchConfig } from './ethernet-parameters.ts';

const QUANTUM_BYTES = 64;
const PS_PER_NS = 1000;
/** Quanta within which a receiver of PAUSE must stop, up to each rate in Gb/s; in proportion beyond the last. */
const responseQuanta = [
  [10, 67],
  [25, 80],
  [40, 118],
  [100, 394],
  [200, 453],
] as const;

function quantaAt(gigabitsPerSecond: number): number {
  const row = responseQuanta.find(([most]) => gigabitsPerSecond <= most);
  if (row !== undefined) return row[1];
  const [most, quanta] = responseQuanta.at(-1)!;
  return Math.ceil((quanta * gigabitsPerSecond) / most);
}

/**
 * Bytes of headroom for one class of any input of a switch: as many as the cable needs from which most still arrive,
 * were it as long as the configuration says. 0 without cables.
 */
export const switchHeadroomBytesOf = (
  cables: readonly EthernetConfig[],
  { headroomMetres, latencyNs }: Pick<EthernetSwitchConfig, 'headroomMetres' | 'latencyNs'>,
): number => Math.max(0, ...cables.map((cable) => headroomBytesOf(cable, headroomMetres, latencyNs)));

/** Bytes of headroom for one class of one input. @param latencyNs from the last byte of a frame until the switch counts it */
export function headroomBytesOf(config: EthernetConfig, cableMetres: number, latencyNs: number): number {
  const frameBytes = ethernetFrameBytesMax(withTag(config)) + ETHERNET_FCS_BYTES;
  const { numeratorPs, denominator } = ethernetByteTime(config);
  const delayPs = 2 * ethernetLatencyPs({ ...config, cableMetres });
  const decisionPs = latencyNs * PS_PER_NS;
  const flyingBytes = Math.ceil(((delayPs + decisionPs) * denominator) / numeratorPs);
  return 2 * frameBytes + flyingBytes + QUANTUM_BYTES * quantaAt(config.gigabitsPerSecond);
}
