/**
 * The device as the driver has set it up, followed from its commands alone: donated memory, places of the tables, live
 * objects. A command changes the view when it finishes with status 0.
 */
import {
  type CommandName,
  cqc,
  cqeBytes,
  eqc,
  eqeBytes,
  initHca,
  MptStatus,
  mapEntry,
  mpt,
  type QpTransitionName,
  qpcOffsetInMailbox,
  qpMailbox,
  qpTransitions,
  queryDevCap,
  queryFw,
  srqc,
} from '../../abi/index.ts';
import { type Decoded, mask24, viewOf } from '../../base/index.ts';
import type { MemoryReader } from '../host-memory-reader.ts';
import type { ObservedCommand } from './command-register.ts';
import { type Capabilities, IcmMap, type PlacedTable, type Profile, placedTables } from './icm-map.ts';
import {
  type FollowedCq,
  type FollowedEq,
  type FollowedMpt,
  FollowedQp,
  type FollowedSrq,
  ringPlaceOf,
  srqPlaceOf,
} from './objects.ts';
import { BufferIndex, type BufferPlace, type QueueBuffer, resolvedBuffer } from './queue-buffer.ts';

/** Phases of the device's initialisation by the driver. */
export const Phase = { RESET: 0, FIRMWARE: 1, INITIALISED: 2 } as const;
export type Phase = (typeof Phase)[keyof typeof Phase];

/** The object that a doorbell record belongs to. */
export interface RecordOwner {
  readonly kind: 'qp' | 'cq' | 'srq';
  readonly number: number;
}

export type ObjectTable = 'qps' | 'cqs' | 'srqs' | 'eqs' | 'mpts';
/** Objects that have doorbells. */
export type RungTable = 'qps' | 'cqs' | 'eqs';

const opcodeModifierResize = 0;

export class DeviceView {
  readonly icm = new IcmMap();
  readonly buffers = new BufferIndex();
  readonly qps = new Map<number, FollowedQp>();
  readonly cqs = new Map<number, FollowedCq>();
  readonly srqs = new Map<number, FollowedSrq>();
  readonly eqs = new Map<number, FollowedEq>();
  readonly mpts = new Map<number, FollowedMpt>();
  /** Numbers of destroyed objects. */
  readonly destroyed: Readonly<Record<ObjectTable, Set<number>>> = {
    qps: new Set(),
    cqs: new Set(),
    srqs: new Set(),
    eqs: new Set(),
    mpts: new Set(),
  };
  /**
   * Numbers of objects with doorbells that lived at the last reset and were not created again: their users may not have
   * noticed the reset yet.
   */
  readonly lostAtReset: Readonly<Record<RungTable, Set<number>>> = {
    qps: new Set(),
    cqs: new Set(),
    eqs: new Set(),
  };
  readonly records = new Map<number, RecordOwner>();
  readonly openPorts = new Set<number>();
  phase: Phase = Phase.RESET;
  /** Whether it answered a load with all ones or not at all, or its error buffer reports a failure. */
  isGone = false;
  firmware: Decoded<typeof queryFw> | undefined;
  capabilities: Capabilities | undefined;
  profile: Profile | undefined;
  tables: readonly PlacedTable[] = [];
  /** Number of the first special QP, or -1. */
  specialQpBase = -1;
  firmwarePages = 0;
  auxiliaryPages = 0;
  readonly #memory: MemoryReader;
  /** Entries returned to the driver by HW2SW_MPT since the last SYNC_TPT. */
  readonly #releasedMpts = new Set<number>();

  constructor(memory: MemoryReader) {
    this.#memory = memory;
  }

  /** Handles a reset: the device keeps nothing. The answers to QUERY_FW and QUERY_DEV_CAP stay valid. */
  reset(): void {
    for (const table of ['qps', 'cqs', 'eqs'] as const)
      for (const number of this[table].keys()) this.lostAtReset[table].add(number);
    this.close();
    this.icm.clear();
    this.phase = Phase.RESET;
    this.isGone = false;
    this.firmwarePages = 0;
    this.auxiliaryPages = 0;
  }

  /** CLOSE_HCA: destroys all objects; the donated pages stay. */
  close(): void {
    for (const table of ['qps', 'cqs', 'srqs', 'eqs', 'mpts'] as const) {
      this[table].clear();
      this.destroyed[table].clear();
    }
    this.#releasedMpts.clear();
    this.buffers.clear();
    this.records.clear();
    this.openPorts.clear();
    this.profile = undefined;
    this.tables = [];
    this.specialQpBase = -1;
    if (this.phase === Phase.INITIALISED) this.phase = Phase.FIRMWARE;
  }

  table(name: string): PlacedTable | undefined {
    return this.tables.find((table) => table.name === name);
  }

  /** ICM address of an entry, or -1 before INIT_HCA. Object numbers count modulo the table's size. */
  entryAddress(name: string, index: number): number {
    const table = this.table(name);
    return table === undefined ? -1 : table.base + (index % table.entries) * table.entryBytes;
  }

  resolve(place: BufferPlace): QueueBuffer {
    return resolvedBuffer(place, this.icm, this.table('MTT')?.base ?? 0, this.#memory);
  }

  /** Handles a posted command: before the command ends, a CQ already switches to its new buffer. */
  posted({ name, inputModifier: cqn, opcodeModifier, inBox }: ObservedCommand): void {
    if (name !== 'MODIFY_CQ' || opcodeModifier !== opcodeModifierResize || inBox === undefined) return;
    const cq = this.cqs.get(cqn);
    if (cq === undefined) return;
    const { logEntries, logPageSize4k, mttAddress, pageOffset32 } = cqc.decode(inBox);
    const place = ringPlaceOf({ mttAddress, logPageSize4k, pageOffset32, logEntries }, cqeBytes);
    cq.nextBuffer = this.resolve(place);
    this.buffers.add('cq', cqn, cq.nextBuffer);
  }

  /** Handles a command that failed or was never answered. */
  refused({ name, inputModifier: cqn, opcodeModifier }: ObservedCommand): void {
    const cq = this.cqs.get(cqn);
    if (name === 'MODIFY_CQ' && opcodeModifier === opcodeModifierResize && cq !== undefined)
      this.#settleCq(cq, cq.buffer);
  }

  /** Handles a command that succeeded. */
  apply(command: ObservedCommand): void {
    if (command.name === undefined) return;
    const { name, inBox } = command;
    if (name in qpTransitions) this.#transition(command, name as QpTransitionName);
    else if (inBox === undefined) this.#withoutBox(command, name);
    else this.#withBox(command, name, inBox);
  }

  #withoutBox(command: ObservedCommand, name: CommandName): void {
    const { inputModifier: number, outBox } = command;
    if (name === 'QUERY_FW' && outBox !== undefined) this.firmware = queryFw.decode(outBox);
    else if (name === 'QUERY_DEV_CAP' && outBox !== undefined) this.capabilities = queryDevCap.decode(outBox);
    else if (name === 'CONF_SPECIAL_QP') this.specialQpBase = number === 0 ? -1 : number & mask24;
    else if (name === 'RUN_FW') this.phase = Phase.FIRMWARE;
    else if (name === 'CLOSE_HCA') this.close();
    else if (name === 'UNMAP_ICM') this.icm.unmap(command.inParam, number);
    else if (name === 'UNMAP_ICM_AUX') this.auxiliaryPages = 0;
    else if (name === 'UNMAP_FA') {
      this.firmwarePages = 0;
      this.phase = Phase.RESET;
    } else if (name === 'INIT_PORT') this.openPorts.add(number);
    else if (name === 'CLOSE_PORT') this.openPorts.delete(number);
    else if (name === 'HW2SW_MPT') this.#releaseMpt(number);
    else if (name === 'SYNC_TPT') this.#syncMpts();
    else if (name === 'HW2SW_CQ') this.#destroyCq(number);
    else if (name === 'HW2SW_EQ') this.#destroyEq(number);
    else if (name === 'HW2SW_SRQ') this.#destroySrq(number);
  }

  #withBox(command: ObservedCommand, name: CommandName, box: Uint8Array): void {
    const { inputModifier: number } = command;
    if (name === 'INIT_HCA') this.#initialise(box);
    else if (name === 'MAP_ICM')
      this.#eachChunk(command, (icm, host, pages) => this.icm.map(icm, host, pages));
    else if (name === 'MAP_ICM_AUX')
      this.#eachChunk(command, (_icm, _host, pages) => {
        this.auxiliaryPages += pages;
      });
    else if (name === 'MAP_FA')
      this.#eachChunk(command, (_icm, _host, pages) => {
        this.firmwarePages += pages;
      });
    else if (name === 'SW2HW_MPT') this.#createMpt(number, box);
    else if (name === 'SW2HW_CQ') this.#createCq(number, box);
    else if (name === 'SW2HW_EQ') this.#createEq(number, box);
    else if (name === 'SW2HW_SRQ') this.#createSrq(number, box);
    else if (name === 'MODIFY_CQ' && command.opcodeModifier === opcodeModifierResize)
      this.#resizeCq(number, box);
  }

  #eachChunk(
    { inBox, inputModifier }: ObservedCommand,
    visit: (icmAddress: number, hostAddress: number, pages: number) => void,
  ): void {
    for (const chunk of chunksOf(inBox, inputModifier))
      visit(chunk.icmAddress, chunk.hostAddress, chunk.pages);
  }

  #initialise(box: Uint8Array): void {
    this.profile = initHca.decode(box);
    this.tables = placedTables(this.profile, this.capabilities);
    this.phase = Phase.INITIALISED;
  }

  // Queue pairs.

  #transition({ inputModifier, inBox }: ObservedCommand, name: QpTransitionName): void {
    const qpn = inputModifier & mask24;
    if (name === '2RST_QP') return this.#destroyQp(qpn);
    let qp = this.qps.get(qpn);
    if (name === 'RST2INIT_QP') {
      this.#destroyQp(qpn);
      qp = new FollowedQp(qpn);
    }
    if (qp === undefined) return;
    if (
      inBox === undefined ||
      qpTransitions[name].required.length + Number(qpTransitions[name].takesOptional) === 0
    )
      qp.state = qpTransitions[name].to;
    else {
      const mask = qpMailbox.fields.optionalParameterMask.get(viewOf(inBox), 0);
      qp.transition(name, mask, inBox, qpcOffsetInMailbox);
    }
    if (name === 'RST2INIT_QP') this.#addQp(qp);
  }

  #addQp(qp: FollowedQp): void {
    qp.buffer = this.resolve(qp.place);
    this.buffers.add('qp', qp.qpn, qp.buffer);
    if (qp.hasReceiveQueue) this.records.set(qp.recordAddress, { kind: 'qp', number: qp.qpn });
    this.qps.set(qp.qpn, qp);
    this.destroyed.qps.delete(qp.qpn);
    this.lostAtReset.qps.delete(qp.qpn);
  }

  #destroyQp(qpn: number): void {
    const qp = this.qps.get(qpn);
    if (qp === undefined) return;
    if (qp.buffer !== undefined) this.buffers.remove('qp', qpn, qp.buffer);
    if (qp.hasReceiveQueue) this.records.delete(qp.recordAddress);
    this.qps.delete(qpn);
    this.destroyed.qps.add(qpn);
  }

  // Completion, event and shared receive queues.

  #createCq(cqn: number, box: Uint8Array): void {
    const context = cqc.decode(box);
    const buffer = this.resolve(ringPlaceOf(context, cqeBytes));
    const { logEntries, doorbellRecordAddress } = context;
    const counts = { produced: 0, resizeCount: 0, firedCount: 0 };
    this.cqs.set(cqn, { cqn, context, buffer, nextBuffer: undefined, logEntries, ...counts });
    this.destroyed.cqs.delete(cqn);
    this.lostAtReset.cqs.delete(cqn);
    this.buffers.add('cq', cqn, buffer);
    this.records.set(Number(doorbellRecordAddress), { kind: 'cq', number: cqn });
  }

  #resizeCq(cqn: number, box: Uint8Array): void {
    const cq = this.cqs.get(cqn);
    if (cq?.nextBuffer === undefined) return;
    this.#settleCq(cq, cq.nextBuffer);
    cq.logEntries = cqc.decode(box).logEntries;
    cq.resizeCount++;
  }

  /** Keeps one of two buffers: the CQ's current one, or the one that it is resized to. */
  #settleCq(cq: FollowedCq, buffer: QueueBuffer): void {
    this.#forgetBuffers(cq);
    cq.buffer = buffer;
    cq.nextBuffer = undefined;
    this.buffers.add('cq', cq.cqn, buffer);
  }

  #forgetBuffers({ cqn, buffer, nextBuffer }: FollowedCq): void {
    this.buffers.remove('cq', cqn, buffer);
    if (nextBuffer !== undefined) this.buffers.remove('cq', cqn, nextBuffer);
  }

  #destroyCq(cqn: number): void {
    const cq = this.cqs.get(cqn);
    if (cq === undefined) return;
    this.#forgetBuffers(cq);
    this.records.delete(Number(cq.context.doorbellRecordAddress));
    this.cqs.delete(cqn);
    this.destroyed.cqs.add(cqn);
  }

  #createEq(eqn: number, box: Uint8Array): void {
    const context = eqc.decode(box);
    const buffer = this.resolve(ringPlaceOf(context, eqeBytes));
    this.eqs.set(eqn, { eqn, context, buffer, produced: 0 });
    this.destroyed.eqs.delete(eqn);
    this.lostAtReset.eqs.delete(eqn);
    this.buffers.add('eq', eqn, buffer);
  }

  #destroyEq(eqn: number): void {
    const eq = this.eqs.get(eqn);
    if (eq === undefined) return;
    this.buffers.remove('eq', eqn, eq.buffer);
    this.eqs.delete(eqn);
    this.destroyed.eqs.add(eqn);
  }

  #createSrq(srqn: number, box: Uint8Array): void {
    const context = srqc.decode(box);
    const buffer = this.resolve(srqPlaceOf(context));
    this.srqs.set(srqn, { srqn, context, buffer, head: 0, fetched: 0, posted: 0, completed: 0 });
    this.destroyed.srqs.delete(srqn);
    this.buffers.add('srq', srqn, buffer);
    this.records.set(Number(context.doorbellRecordAddress), { kind: 'srq', number: srqn });
  }

  #destroySrq(srqn: number): void {
    const srq = this.srqs.get(srqn);
    if (srq === undefined) return;
    this.buffers.remove('srq', srqn, srq.buffer);
    this.records.delete(Number(srq.context.doorbellRecordAddress));
    this.srqs.delete(srqn);
    this.destroyed.srqs.add(srqn);
  }

  // Memory regions.

  #createMpt(index: number, box: Uint8Array): void {
    this.mpts.set(index, { index, entry: mpt.decode(box) });
    this.destroyed.mpts.delete(index);
    this.#releasedMpts.delete(index);
  }

  /** The entry belongs to the driver again, to free it or to edit it in its page. */
  #releaseMpt(index: number): void {
    const region = this.mpts.get(index);
    if (region === undefined) return;
    this.mpts.delete(index);
    this.destroyed.mpts.add(index);
    this.#releasedMpts.add(index);
  }

  /** Entries that the driver has edited in their pages and marked valid belong to the device again. */
  #syncMpts(): void {
    for (const index of this.#releasedMpts) {
      const icmAddress = this.entryAddress('dMPT', index);
      const address = icmAddress < 0 ? -1 : this.icm.hostAddressOf(icmAddress);
      const bytes = address < 0 ? undefined : this.#memory.read(address, mpt.sizeBytes);
      if (bytes === undefined) continue;
      const { status, isRegion, keyIndexForm } = mpt.decode(bytes);
      const mask = (this.table('dMPT')?.entries ?? 1) - 1;
      if (status === MptStatus.VALID && isRegion === 1 && (keyIndexForm & mask) === index)
        this.#createMpt(index, bytes);
    }
    this.#releasedMpts.clear();
  }
}

export interface Chunk {
  readonly icmAddress: number;
  readonly hostAddress: number;
  readonly pages: number;
}

/** The chunks of a memory donation. */
export function* chunksOf(box: Uint8Array | undefined, count: number): Generator<Chunk> {
  if (box === undefined) return;
  for (let index = 0; index < Math.min(count, box.length / mapEntry.sizeBytes); index++) {
    const { icmAddress, physicalAddress, logSize4k } = mapEntry.decode(box, index * mapEntry.sizeBytes);
    yield { icmAddress: Number(icmAddress), hostAddress: Number(physicalAddress), pages: 2 ** logSize4k };
  }
}
