/** Packets by opcode name, copied as plain data at the end of a run. */
import { opcodeRow, type PacketCounters } from '../../wire/index.ts';

export interface PacketLedger {
  readonly packets: number;
  readonly bytes: number;
  readonly payloadBytes: number;
}

export function packetsOf(counters: PacketCounters): Record<string, PacketLedger> {
  const rows: Record<string, PacketLedger> = {};
  for (const [opcode, { packets, bytes, payloadBytes }] of counters.rows.entries()) {
    if (packets === 0) continue;
    const name = opcodeRow(opcode)?.name ?? `0x${opcode.toString(16)}`;
    rows[name] = { packets, bytes, payloadBytes };
  }
  return rows;
}
