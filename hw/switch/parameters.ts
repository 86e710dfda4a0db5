/** Latency, buffers and forwarding of the switches of a fabric. */
import { type ConfigOf, choice, number } from '../../base/index.ts';

export const switchParameters = {
  latencyNs: number(
    120,
    'ns',
    [1, 100_000],
    'fabric-measurements.csv X-250: SX6036, 200 ns from port to port, less the two ports (wire.portLatencyNs)',
    'From the first byte of a packet within the switch until the first byte leaves it, where nothing is in the way.',
  ),
  forwarding: choice(
    'cut-through',
    ['cut-through', 'store-and-forward'],
    'IBTA vol 1, 18.2.4; SwitchX forwards by cut-through',
    'Whether a packet may leave before its last byte has arrived. One that leaves faster than it arrives waits long enough.',
  ),
  inputBufferBytes: number(
    32_768,
    'bytes',
    [8448, 131_072],
    'estimate: no figure of SwitchX is published',
    'Receive buffer of each port of an InfiniBand switch up to 4X QDR, promised as credits; as much more as a link is faster.',
  ),
  hoqLife: number(
    18,
    'code',
    [0, 31],
    'opensm 3.3.23: HOQLife 0x12 between switches, 0x10 towards hosts',
    'A packet that is the first of its queue for longer than 4.096 us x 2^code is dropped; above 19, never (PortInfo.HOQLife).',
  ),
} as const;

export type SwitchConfig = ConfigOf<typeof switchParameters>;
