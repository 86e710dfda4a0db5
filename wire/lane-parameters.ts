/** Tables of virtual lanes that the subnet manager of the plan writes to all ports: other values than these need `wire.dataVls` above 1. */
import { type ConfigOf, type NumberParameter, number } from '../base/index.ts';

const OPENSM = 'opensm 3.3.23, qos_sl2vl: 0 to 14 in order, then 7';

const laneOfLevel = (lane: number, level: number): NumberParameter =>
  number(
    lane,
    'VL',
    [0, 15],
    OPENSM,
    `Lane of service level ${level}, modulo the number of data lanes; 15 discards its packets.`,
  );

const weight = (value: number, lane: number, table: string): NumberParameter =>
  number(
    value,
    'x 64 bytes',
    [0, 255],
    'choice: equal shares',
    `Weight of data lane ${lane} in the table of ${table} priority; with 0 in both tables it never sends.`,
  );

export const laneParameters = {
  highLimit: number(
    0,
    'x 4 KiB',
    [0, 255],
    'IBTA vol 1, 7.6.9; opensm 3.3.23, qos_high_limit 0',
    'Data of high priority before a packet of low priority may leave; 0: one packet, 255: no limit.',
  ),
} as const;

export const slToVlParameters = {
  sl0: laneOfLevel(0, 0),
  sl1: laneOfLevel(1, 1),
  sl2: laneOfLevel(2, 2),
  sl3: laneOfLevel(3, 3),
  sl4: laneOfLevel(4, 4),
  sl5: laneOfLevel(5, 5),
  sl6: laneOfLevel(6, 6),
  sl7: laneOfLevel(7, 7),
  sl8: laneOfLevel(8, 8),
  sl9: laneOfLevel(9, 9),
  sl10: laneOfLevel(10, 10),
  sl11: laneOfLevel(11, 11),
  sl12: laneOfLevel(12, 12),
  sl13: laneOfLevel(13, 13),
  sl14: laneOfLevel(14, 14),
  sl15: laneOfLevel(7, 15),
} as const;

export const lowWeightParameters = {
  vl0: weight(64, 0, 'low'),
  vl1: weight(64, 1, 'low'),
  vl2: weight(64, 2, 'low'),
  vl3: weight(64, 3, 'low'),
  vl4: weight(64, 4, 'low'),
  vl5: weight(64, 5, 'low'),
  vl6: weight(64, 6, 'low'),
  vl7: weight(64, 7, 'low'),
} as const;

export const highWeightParameters = {
  vl0: weight(0, 0, 'high'),
  vl1: weight(0, 1, 'high'),
  vl2: weight(0, 2, 'high'),
  vl3: weight(0, 3, 'high'),
  vl4: weight(0, 4, 'high'),
  vl5: weight(0, 5, 'high'),
  vl6: weight(0, 6, 'high'),
  vl7: weight(0, 7, 'high'),
} as const;

export interface LanesConfig extends ConfigOf<typeof laneParameters> {
  readonly slToVl: ConfigOf<typeof slToVlParameters>;
  readonly low: ConfigOf<typeof lowWeightParameters>;
  readonly high: ConfigOf<typeof highWeightParameters>;
}
