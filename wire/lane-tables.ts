/** The tables that a subnet manager writes to a port for its virtual lanes, as the configuration has them. */
import { defaultsOf } from '../base/index.ts';
import {
  highWeightParameters,
  type LanesConfig,
  laneParameters,
  lowWeightParameters,
  slToVlParameters,
} from './lane-parameters.ts';
import { DISCARDED_LANE, SlToVlTable } from './sl-to-vl-table.ts';
import { arbitrationOf, type PortArbitration } from './vl-arbiter.ts';

/** Entries of each arbitration table: as many as the largest number of data lanes, as ConnectX-3 reports in PortInfo. */
export const ARBITRATION_ENTRIES = 8;

export const lanesDefaults = (): LanesConfig => ({
  ...defaultsOf(laneParameters),
  slToVl: defaultsOf(slToVlParameters),
  low: defaultsOf(lowWeightParameters),
  high: defaultsOf(highWeightParameters),
});

export interface LaneTables extends PortArbitration {
  readonly slToVl: SlToVlTable;
  highLimit: number;
}

/** New tables for ports with so many data lanes, a power of two; entries of the configuration count modulo that number. */
export function laneTablesOf({ slToVl, low, high, highLimit }: LanesConfig, laneCount: number): LaneTables {
  const table = new SlToVlTable();
  Object.values(slToVl).forEach((lane, level) => {
    table.setLane(level, lane === DISCARDED_LANE ? lane : lane % laneCount);
  });
  return {
    slToVl: table,
    high: arbitrationOf(Object.values(high).slice(0, laneCount), ARBITRATION_ENTRIES),
    low: arbitrationOf(Object.values(low).slice(0, laneCount), ARBITRATION_ENTRIES),
    highLimit,
  };
}
