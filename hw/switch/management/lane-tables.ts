/**
 * The data plane's tables of lanes as attributes have them: blocks of 64 bytes. Source: IBTA volume 1, 14.2.5.8 (SL to VL) and 14.2.5.9
 * (arbitration).
 */
import type { Picoseconds } from '../../../base/index.ts';
import type { LaneTables } from '../../../wire/index.ts';
import type { SlToVlTables } from '../sl-to-vl-tables.ts';

/** Arbitration tables and VLHighLimit of a port. */
export type PortWeights = Pick<LaneTables, 'high' | 'low' | 'highLimit'>;

export interface SwitchLanes {
  /** Data lanes of the cables. */
  readonly count: number;
  readonly slToVl: SlToVlTables;
  /** By port from 0; those of port 0 and of a port without a cable have no effect. */
  readonly weights: readonly PortWeights[];
}

/** SLtoVLMappingTable. @returns false if the modifier names no pair of ports */
export function slToVlAttribute(
  { slToVl, weights }: SwitchLanes,
  modifier: number,
  data: Uint8Array,
  setPs: Picoseconds | undefined,
): boolean {
  const [input, output] = [modifier >>> 8, modifier & 0xff];
  if (input >= weights.length || output >= weights.length) return false;
  if (setPs !== undefined) slToVl.setBlock(input, output, data, setPs);
  data.fill(0);
  slToVl.of(input, output).getBlock(data);
  return true;
}

/** VLArbitrationTable: block 1 of the low table, 3 of the high one. @returns false if the modifier names no block of a port */
export function arbitrationAttribute(
  { weights }: SwitchLanes,
  modifier: number,
  data: Uint8Array,
  isSet: boolean,
): boolean {
  const tables = weights[modifier & 0xffff];
  const block = modifier >>> 16;
  if (tables === undefined || (block !== LOW_BLOCK && block !== HIGH_BLOCK)) return false;
  const table = block === LOW_BLOCK ? tables.low : tables.high;
  if (isSet) table.setBlock(0, data);
  table.getBlock(0, data);
  return true;
}

/** Tables of up to 32 entries have one block each. */
const LOW_BLOCK = 1;
const HIGH_BLOCK = 3;
