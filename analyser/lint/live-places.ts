/** ICM ranges of the entries of live objects, which must stay mapped. */
import { mttEntryBytes } from '../../abi/index.ts';
import type { DeviceView } from '../follow/device-view.ts';
import { tablesOfQps } from '../follow/icm-map.ts';
import { mttEntriesOfRegion } from '../follow/objects.ts';
import { mttEntriesOf, type QueueBuffer } from '../follow/queue-buffer.ts';
import { hex } from './context.ts';

export interface LivePlace {
  /** The object, in words. */
  readonly word: string;
  /** ICM address of its entries, and their length. */
  readonly address: number;
  readonly lengthBytes: number;
}

export function* livePlaces(view: DeviceView): Generator<LivePlace> {
  const mttBase = view.table('MTT')?.base ?? 0;
  const context = (word: string, table: string, index: number): LivePlace => ({
    word,
    address: view.entryAddress(table, index),
    lengthBytes: view.table(table)?.entryBytes ?? 0,
  });
  const translation = (word: string, buffer: QueueBuffer): LivePlace => ({
    word,
    address: mttBase + buffer.mttAddress,
    lengthBytes: mttEntriesOf(buffer) * mttEntryBytes,
  });
  for (const { qpn, buffer } of view.qps.values()) {
    const word = `QP ${hex(qpn)}`;
    for (const table of tablesOfQps(view.profile)) yield context(word, table, qpn);
    if (buffer !== undefined) yield translation(word, buffer);
  }
  for (const { cqn, buffer } of view.cqs.values()) {
    yield context(`CQ ${hex(cqn)}`, 'CQC', cqn);
    yield translation(`CQ ${hex(cqn)}`, buffer);
  }
  for (const { srqn, buffer } of view.srqs.values()) {
    yield context(`SRQ ${hex(srqn)}`, 'SRQC', srqn);
    yield translation(`SRQ ${hex(srqn)}`, buffer);
  }
  for (const { eqn, buffer } of view.eqs.values()) {
    yield context(`EQ ${hex(eqn)}`, 'EQC', eqn);
    yield translation(`EQ ${hex(eqn)}`, buffer);
  }
  for (const { index, entry } of view.mpts.values()) {
    const word = `MPT ${hex(index)}`;
    yield context(word, 'dMPT', index);
    const entries = mttEntriesOfRegion(entry);
    if (entries > 0)
      yield { word, address: mttBase + entry.mttAddress, lengthBytes: entries * mttEntryBytes };
  }
}
