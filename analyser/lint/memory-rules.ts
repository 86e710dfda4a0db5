/** Rules about memory that the driver gives to the device: donations, translation entries, contexts in ICM. */
import {
  CmptType,
  type CommandName,
  cqc,
  cqeBytes,
  eqc,
  eqeBytes,
  icmPageBytes,
  mpt,
  mttEntryBytes,
  qpcOffsetInMailbox,
  qpMailbox,
  srqc,
} from '../../abi/index.ts';
import { mask24, viewOf } from '../../base/index.ts';
import type { ObservedCommand } from '../follow/command-register.ts';
import { chunksOf, Phase } from '../follow/device-view.ts';
import { tableAt, tablesOfQps } from '../follow/icm-map.ts';
import { FollowedQp, mttEntriesOfRegion, ringPlaceOf, srqPlaceOf } from '../follow/objects.ts';
import { type BufferPlace, mttEntriesOf } from '../follow/queue-buffer.ts';
import { hex, type LintContext } from './context.ts';
import { livePlaces } from './live-places.ts';

type NamedCommand = ObservedCommand & { readonly name: CommandName };

/** Part of a chunk that is checked page by page: chunks of Linux have 256 KiB. */
const checkedBytesMax = 2 ** 22;

/** MAP_FA, MAP_ICM_AUX, MAP_ICM: the chunks must be memory, and no page may be donated twice. */
export function checkDonation(lint: LintContext, command: NamedCommand): void {
  if (command.name !== 'MAP_FA' && command.name !== 'MAP_ICM_AUX' && command.name !== 'MAP_ICM') return;
  for (const { icmAddress, hostAddress, pages } of chunksOf(command.inBox, command.inputModifier)) {
    const sizeBytes = pages * icmPageBytes;
    const isMemory = lint.isMemory(hostAddress, 1) && lint.isMemory(hostAddress + sizeBytes - 1, 1);
    if (!isMemory)
      lint.report(
        'memory-outside',
        `${command.name} ${hex(hostAddress)}`,
        `${hex(sizeBytes)} bytes are not all memory`,
      );
    if (command.name !== 'MAP_ICM' || !isMemory) continue;
    const { icm } = lint.view;
    for (let at = 0; at < Math.min(sizeBytes, checkedBytesMax); at += icmPageBytes) {
      if (icm.isMapped(icmAddress + at)) {
        lint.report('icm-mapped-twice', `ICM page ${hex(icmAddress + at)}`, 'is mapped already');
        break;
      }
      if (icm.icmAddressOf(hostAddress + at) >= 0) {
        lint.report(
          'icm-mapped-twice',
          `host page ${hex(hostAddress + at)}`,
          'already backs another ICM page',
        );
        break;
      }
    }
  }
}

/** UNMAP_ICM, UNMAP_ICM_AUX, UNMAP_FA: memory in use must not be unmapped. */
export function checkRemoval(lint: LintContext, { name, inParam, inputModifier }: NamedCommand): void {
  const { view } = lint;
  if ((name === 'UNMAP_ICM_AUX' || name === 'UNMAP_FA') && view.phase === Phase.INITIALISED)
    lint.report('pages-unmap-in-use', name, 'before CLOSE_HCA');
  if (name !== 'UNMAP_ICM') return;
  const sizeBytes = inputModifier * icmPageBytes;
  const object = `ICM ${hex(inParam)}`;
  // Linux unmaps whole chunks of 64 pages, even if it has mapped only part of one.
  if (!view.icm.isAnyMapped(inParam, inputModifier))
    lint.report('icm-unmap-unmapped', object, `none of its ${inputModifier} pages is mapped`);
  for (const { word, address, lengthBytes } of livePlaces(view))
    if (address < inParam + sizeBytes && address + lengthBytes > inParam) {
      const table = tableAt(view.tables, address)?.name ?? 'ICM';
      lint.report('icm-unmap-in-use', object, `${word} has entries of ${table} at ${hex(address)}`);
      return;
    }
}

/** Commands that create an object: its context, translation entries and memory must be mapped. */
export function checkPlaces(lint: LintContext, command: NamedCommand): void {
  const { name, inputModifier: number, inBox } = command;
  if (inBox === undefined || lint.view.phase !== Phase.INITIALISED) return;
  if (name === 'SW2HW_CQ') {
    const context = cqc.decode(inBox);
    const object = `CQ ${hex(number)}`;
    checkContext(lint, object, [entry(lint, 'CQC', number), cmpt(lint, CmptType.CQ, number)]);
    checkBuffer(lint, object, ringPlaceOf(context, cqeBytes));
    checkRecord(lint, object, Number(context.doorbellRecordAddress), 8);
  } else if (name === 'SW2HW_EQ') {
    const object = `EQ ${hex(number)}`;
    checkContext(lint, object, [entry(lint, 'EQC', number), cmpt(lint, CmptType.EQ, number)]);
    checkBuffer(lint, object, ringPlaceOf(eqc.decode(inBox), eqeBytes));
  } else if (name === 'SW2HW_SRQ') {
    const context = srqc.decode(inBox);
    const object = `SRQ ${hex(number)}`;
    checkContext(lint, object, [entry(lint, 'SRQC', number), cmpt(lint, CmptType.SRQ, number)]);
    checkBuffer(lint, object, srqPlaceOf(context));
    checkRecord(lint, object, Number(context.doorbellRecordAddress), 4);
  } else if (name === 'SW2HW_MPT') checkRegion(lint, number, inBox);
  else if (name === 'RST2INIT_QP') checkQp(lint, number & mask24, inBox);
}

interface Place {
  readonly table: string;
  readonly address: number;
}

const entry = (lint: LintContext, table: string, index: number): Place => ({
  table,
  address: lint.view.entryAddress(table, index),
});

/** The arrays of the cMPT table hold 2^24 entries each; an object's number counts modulo its own table. */
function cmpt(lint: LintContext, type: CmptType, index: number): Place {
  const tableOf = {
    [CmptType.QP]: 'QPC',
    [CmptType.SRQ]: 'SRQC',
    [CmptType.CQ]: 'CQC',
    [CmptType.EQ]: 'EQC',
  };
  const entries = lint.view.table(tableOf[type])?.entries ?? 1;
  return entry(lint, 'cMPT', type * 2 ** 24 + (index % entries));
}

function checkContext(lint: LintContext, object: string, places: readonly Place[]): void {
  for (const { table, address } of places)
    if (!lint.view.icm.isMapped(address))
      lint.report(
        'icm-not-mapped',
        object,
        `its entry of ${table}, at ${hex(address)}, is in a page that is not mapped`,
      );
}

function checkBuffer(lint: LintContext, object: string, place: BufferPlace): void {
  if (!checkMtt(lint, object, place.mttAddress, mttEntriesOf(place))) return;
  const { pages } = lint.view.resolve(place);
  const missing = pages.findIndex((address) => Number.isNaN(address));
  if (missing !== -1)
    return lint.report('mtt-not-present', object, `translation entry ${missing} of ${pages.length}`);
  const outside = pages.find((address) => !lint.isMemory(address + firstByteOf(place, address, pages), 1));
  if (outside !== undefined)
    lint.report('memory-outside', object, `its buffer has a page at ${hex(outside)}`);
}

/** A large page may begin before the buffer's memory in it. */
const firstByteOf = (place: BufferPlace, address: number, pages: Float64Array): number =>
  address === pages[0] ? place.pageOffset : 0;

function checkMtt(lint: LintContext, object: string, mttAddress: number, entries: number): boolean {
  const base = lint.view.table('MTT')?.base ?? 0;
  for (let at = 0; at < entries * mttEntryBytes; at += icmPageBytes) {
    const address = base + mttAddress + at;
    if (lint.view.icm.isMapped(address)) continue;
    lint.report(
      'icm-not-mapped',
      object,
      `its translation entries at ${hex(address)} are in a page that is not mapped`,
    );
    return false;
  }
  return true;
}

function checkRecord(lint: LintContext, object: string, address: number, lengthBytes: number): void {
  if (!lint.isMemory(address, lengthBytes))
    lint.report('memory-outside', object, `its doorbell record at ${hex(address)}`);
}

function checkRegion(lint: LintContext, index: number, box: Uint8Array): void {
  const region = mpt.decode(box);
  const object = `MPT ${hex(index)}`;
  checkContext(lint, object, [entry(lint, 'dMPT', index)]);
  const entries = mttEntriesOfRegion(region);
  if (entries > 0) checkMtt(lint, object, region.mttAddress, entries);
}

function checkQp(lint: LintContext, qpn: number, box: Uint8Array): void {
  const object = `QP ${hex(qpn)}`;
  const rdmarc = qpn * 2 ** (lint.view.profile?.logRdmarcPerQp ?? 0);
  const places = tablesOfQps(lint.view.profile).map((name) => entry(lint, name, qpn));
  checkContext(lint, object, [...places, entry(lint, 'RDMARC', rdmarc), cmpt(lint, CmptType.QP, qpn)]);
  const qp = new FollowedQp(qpn);
  const mask = qpMailbox.fields.optionalParameterMask.get(viewOf(box), 0);
  qp.transition('RST2INIT_QP', mask, box, qpcOffsetInMailbox);
  if (!qp.isIndirect) checkBuffer(lint, object, qp.place);
  if (qp.hasReceiveQueue) checkRecord(lint, object, qp.recordAddress, 4);
}
