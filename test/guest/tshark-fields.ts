/** tshark's names of transport fields, and the values of a packet that was parsed here. */
import type { WirePacket } from '../../wire/index.ts';

/** A field of tshark, and its value from a packet: undefined if the packet lacks it. */
export type ComparedFields = Readonly<Record<string, (packet: WirePacket) => number | bigint | undefined>>;

export const transportFields: ComparedFields = {
  'infiniband.bth.opcode': ({ bth }) => bth.opcode,
  'infiniband.bth.m': ({ bth }) => bth.migrationRequest,
  'infiniband.bth.se': ({ bth }) => bth.solicitedEvent,
  'infiniband.bth.padcnt': ({ bth }) => bth.padCount,
  'infiniband.bth.p_key': ({ bth }) => bth.partitionKey,
  'infiniband.bth.destqp': ({ bth }) => bth.destinationQp,
  'infiniband.bth.a': ({ bth }) => bth.ackRequest,
  'infiniband.bth.psn': ({ bth }) => bth.psn,
  'infiniband.reth.va': ({ headers }) => (headers.RETH ?? headers.AtomicETH)?.virtualAddress,
  'infiniband.reth.r_key': ({ headers }) => (headers.RETH ?? headers.AtomicETH)?.rKey,
  'infiniband.reth.dmalen': ({ headers }) => headers.RETH?.dmaLength,
  'infiniband.aeth.syndrome': ({ headers }) => headers.AETH?.syndrome,
  'infiniband.aeth.msn': ({ headers }) => headers.AETH?.messageSequenceNumber,
  'infiniband.deth.srcqp': ({ headers }) => headers.DETH?.sourceQp,
};

/** tshark's spelling of a number: decimal, 0x, or a truth value. */
const numberOf = (text: string): bigint => (text === 'True' ? 1n : text === 'False' ? 0n : BigInt(text));

/** The fields of a packet that tshark reads differently, with its value and the intended one. */
export function otherFieldsOf(
  compared: ComparedFields,
  packet: WirePacket,
  row: readonly string[],
): readonly (readonly [string, bigint | undefined, bigint | undefined])[] {
  return Object.entries(compared).flatMap(([name, fieldOf], column) => {
    const text = row[column]!;
    const value = fieldOf(packet);
    const [read, meant] = [
      text === '' ? undefined : numberOf(text),
      value === undefined ? undefined : BigInt(value),
    ];
    return read === meant ? [] : [[name, read, meant] as const];
  });
}
