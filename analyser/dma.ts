/**
 * Accesses of the device to host memory: assembled from their completions and named by the object that they belong to.
 *
 *     WQE fetch ─► dma.ts ─► work-queue-follower.ts     CQE, EQE ─► completion-follower.ts     records, contexts, translation: here
 *
 * The model's requests carry a traffic class that tells their purpose. The object follows from the places where the
 * driver put its queues, records and tables.
 */
import { cqc, cqRecord, eqc, mpt, mttEntry, mttEntryBytes, qpc, receiveRecord, srqc } from '../abi/index.ts';
import { viewOf } from '../base/index.ts';
import { TrafficClass, trafficClassNames } from '../hw/dma/index.ts';
import { STATUS_SUCCESS, type TappedCompletion, type TappedData } from '../hw/pcie/index.ts';
import type { CompletionFollower } from './completion-follower.ts';
import type { DeviceView } from './follow/device-view.ts';
import { tableAt } from './follow/icm-map.ts';
import { type AnyLayout, anyLayout, fieldsSetIn, fieldText, type ShownField } from './layout-fields.ts';
import type { Linter } from './lint/linter.ts';
import { checkCqRecord, checkReceiveRecord } from './lint/queue-rules.ts';
import type { Trace } from './trace.ts';
import { hex, type ObjectNumbers, type TraceSection } from './trace-event.ts';
import type { WorkQueueFollower } from './work-queue-follower.ts';

/** A read by the device that some completions have answered. */
interface PartialRead {
  address: number;
  bytes: Uint8Array;
  have: number;
}

const contextLayouts: { readonly [table: string]: AnyLayout } = {
  QPC: anyLayout(qpc),
  CQC: anyLayout(cqc),
  SRQC: anyLayout(srqc),
  EQC: anyLayout(eqc),
  dMPT: anyLayout(mpt),
};

/** Returns the name of an ICM entry and its fields. */
interface IcmEntry {
  readonly text: string;
  readonly objects: ObjectNumbers;
  readonly sections: readonly TraceSection[];
}

const { wqeRead, payloadRead, payloadWrite, doorbellRecord, cqe, eqe, context, translation, command } =
  TrafficClass;

export class DmaFollower {
  readonly #trace: Trace;
  readonly #view: DeviceView;
  readonly #linter: Linter | undefined;
  readonly #workQueues: WorkQueueFollower;
  readonly #completions: CompletionFollower;
  readonly #reads = new Map<number, PartialRead>();

  constructor(
    trace: Trace,
    view: DeviceView,
    linter: Linter | undefined,
    workQueues: WorkQueueFollower,
    completions: CompletionFollower,
  ) {
    this.#trace = trace;
    this.#view = view;
    this.#linter = linter;
    this.#workQueues = workQueues;
    this.#completions = completions;
  }

  reset(): void {
    this.#reads.clear();
  }

  /** Handles a completion of a read; inspects the read once it is complete. */
  completion(completion: TappedCompletion, nowPs: number): void {
    const { tag, address, source, offset, lengthBytes, remainingBytes, trafficClass, status } = completion;
    if (status !== STATUS_SUCCESS) {
      this.#reads.delete(tag);
      const text = `${classNameOf(trafficClass)} read of ${remainingBytes} bytes at ${hex(address)} failed, status ${status}`;
      this.#trace.emit('dma', nowPs, text, { address, lengthBytes: remainingBytes });
      return;
    }
    if (trafficClass === payloadRead) {
      this.#payload('read', address, lengthBytes, nowPs);
      return;
    }
    let read = this.#reads.get(tag);
    if (
      read === undefined ||
      read.address + read.have !== address ||
      read.bytes.length - read.have !== remainingBytes
    ) {
      read = { address, bytes: new Uint8Array(remainingBytes), have: 0 };
      this.#reads.set(tag, read);
    }
    read.bytes.set(source.subarray(offset, offset + lengthBytes), read.have);
    read.have += lengthBytes;
    if (read.have < read.bytes.length) return;
    this.#reads.delete(tag);
    this.#readDone(read.address, read.bytes, trafficClass, nowPs);
  }

  write({ address, source, offset, lengthBytes, trafficClass }: TappedData, nowPs: number): void {
    if (trafficClass === payloadWrite) {
      this.#payload('write', address, lengthBytes, nowPs);
      return;
    }
    const bytes = source.slice(offset, offset + lengthBytes);
    if (trafficClass === cqe) this.#completions.cqes(address, bytes, nowPs);
    else if (trafficClass === eqe) this.#completions.eqe(address, bytes, nowPs);
    else {
      this.#linter?.deviceWrote(address, bytes);
      this.#access('write', address, bytes, trafficClass, nowPs);
    }
  }

  #payload(verb: string, address: number, lengthBytes: number, nowPs: number): void {
    if (!this.#trace.wants('dma')) return;
    this.#trace.emit('dma', nowPs, `payload ${verb} ${lengthBytes} bytes at ${hex(address)}`, {
      address,
      lengthBytes,
    });
  }

  #readDone(address: number, bytes: Uint8Array, trafficClass: number, nowPs: number): void {
    if (trafficClass === wqeRead) this.#workQueues.fetched(address, bytes, nowPs);
    else if (trafficClass === doorbellRecord) this.#record(address, bytes, nowPs);
    else {
      if (trafficClass === context || trafficClass === translation || trafficClass === command) {
        const icmAddress = this.#view.icm.icmAddressOf(address);
        if (icmAddress >= 0) this.#linter?.deviceReadIcm(icmAddress, bytes, nowPs);
      }
      this.#access('read', address, bytes, trafficClass, nowPs);
    }
  }

  /** A doorbell record, from which the device learns the software's counter. */
  #record(address: number, bytes: Uint8Array, nowPs: number): void {
    const owner = this.#view.records.get(address);
    const lint = this.#linter?.context;
    lint?.beginAccess(`a read of the doorbell record at ${hex(address)}`, nowPs);
    const details = { address, lengthBytes: bytes.length };
    if (owner === undefined) {
      this.#trace.emit('dma', nowPs, `doorbell record read at ${hex(address)}, of no live queue`, details);
      return;
    }
    const { kind, number } = owner;
    const layout = kind === 'cq' ? anyLayout(cqRecord) : anyLayout(receiveRecord);
    if (this.#trace.wants('dma')) {
      const fields = fieldsSetIn(layout, bytes).map(fieldText).join(' ') || 'all zero';
      const objects = kind === 'cq' ? { cqn: number } : kind === 'qp' ? { qpn: number } : { srqn: number };
      this.#trace.emit('dma', nowPs, `doorbell record of ${kind.toUpperCase()} ${hex(number)}: ${fields}`, {
        ...details,
        objects,
      });
    }
    if (kind === 'cq') {
      const cq = this.#view.cqs.get(number)!;
      // The device may read the consumer counter alone.
      const whole = new Uint8Array(cqRecord.sizeBytes);
      whole.set(bytes.subarray(0, whole.length));
      const consumer = cqRecord.fields.consumerCounter.get(viewOf(whole), 0);
      if (lint !== undefined) checkCqRecord(lint, cq, consumer);
    } else this.#posted(kind, number, receiveRecord.fields.postedCounter.get(viewOf(bytes), 0));
  }

  #posted(kind: 'qp' | 'srq', number: number, postedCounter: number): void {
    const lint = this.#linter?.context;
    if (kind === 'qp') {
      const qp = this.#view.qps.get(number)!;
      qp.receivesPosted = postedCounter;
      if (lint !== undefined)
        checkReceiveRecord(lint, `QP ${hex(number)}`, postedCounter, qp.receivesCompleted, qp.rqWqes);
    } else {
      const srq = this.#view.srqs.get(number)!;
      srq.posted = postedCounter;
      const size = 2 ** srq.context.logWqes;
      if (lint !== undefined)
        checkReceiveRecord(lint, `SRQ ${hex(number)}`, postedCounter, srq.completed, size);
    }
  }

  /** Handles a context, a translation entry or a mailbox. */
  #access(
    verb: 'read' | 'write',
    address: number,
    bytes: Uint8Array,
    trafficClass: number,
    nowPs: number,
  ): void {
    if (!this.#trace.wants('dma')) return;
    const entry = this.#icmEntryAt(address, bytes);
    const name = classNameOf(trafficClass);
    const where = entry === undefined ? '' : `, ${entry.text}`;
    this.#trace.emit('dma', nowPs, `${name} ${verb} ${bytes.length} bytes at ${hex(address)}${where}`, {
      address,
      lengthBytes: bytes.length,
      objects: entry?.objects ?? {},
      sections: entry?.sections ?? [],
    });
  }

  #icmEntryAt(address: number, bytes: Uint8Array): IcmEntry | undefined {
    const icmAddress = this.#view.icm.icmAddressOf(address);
    const table = icmAddress < 0 ? undefined : tableAt(this.#view.tables, icmAddress);
    if (table === undefined) return undefined;
    const index = Math.floor((icmAddress - table.base) / table.entryBytes);
    if (table.name === 'MTT')
      return {
        text: `MTT ${hex(index)} … ${bytes.length / mttEntryBytes} entries`,
        objects: {},
        sections: [{ title: 'MTT', fields: mttFieldsOf(bytes, index) }],
      };
    const layout = contextLayouts[table.name];
    const isWhole =
      layout !== undefined &&
      (icmAddress - table.base) % table.entryBytes === 0 &&
      bytes.length >= layout.sizeBytes;
    const kind = { QPC: 'qpn', CQC: 'cqn', SRQC: 'srqn', EQC: 'eqn', dMPT: 'mpt' }[table.name];
    return {
      text: `${table.name} ${hex(index)} (ICM ${hex(icmAddress)})`,
      objects: kind === undefined ? {} : { [kind]: index },
      sections: isWhole ? [{ title: table.name, fields: fieldsSetIn(layout, bytes) }] : [],
    };
  }
}

/** Fields of consecutive MTT entries, each prefixed with its index: `[0x12].pageAddress`. */
const mttFieldsOf = (bytes: Uint8Array, first: number): ShownField[] =>
  Array.from({ length: Math.floor(bytes.length / mttEntryBytes) }, (_, at) =>
    fieldsSetIn(anyLayout(mttEntry), bytes, at * mttEntryBytes, `[${hex(first + at)}].`),
  ).flat();

export const classNameOf = (trafficClass: number): string =>
  trafficClassNames[trafficClass] ?? `class ${trafficClass}`;
