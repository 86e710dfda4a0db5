/**
 * Route resolution as in ib_sa: queries subnet administration for the path between two GIDs, and repeats the query until it is
 * answered or times out. Any number of queries may be outstanding; a late answer is dropped.
 *
 *     resolveRoute ─► Get(PathRecord) to QP1 of the subnet manager ─► GetResp ─► path, or an errno
 *
 * Sources: IBTA vol 1, 15.2.5.16; Linux 6.1, drivers/infiniband/core/sa_query.c (send_mad: ten tries) and cma.c (cma_query_ib_route).
 */
import {
  MadClass,
  MadMethod,
  MadStatus,
  mad,
  madBytes,
  PathComponent,
  pathRecord,
  SubnetAttribute,
  subnetAdministration,
  subnetDataOffset,
} from '../../abi/index.ts';
import { msToPs, viewOf } from '../../base/index.ts';
import type { Cpu } from '../platform.ts';
import type { ProtocolTimer, ProtocolTimers } from '../protocol-timers.ts';
import { errnoNumbers } from '../uapi.ts';
import type { MadAddress, ReceivedMad } from './management-queue-pair.ts';
import type { Path } from './path.ts';

/** Receives the path, or an errno. It must not wait. */
export type RouteTaken = (outcome: Path | number) => void;

export interface PathQueriesParts {
  readonly timers: Pick<ProtocolTimers, 'after'>;
  /** QP1 of the subnet manager. */
  readonly manager: MadAddress;
  readonly send: (cpu: Cpu, bytes: Uint8Array, to: MadAddress) => void;
}

interface Pending {
  readonly taken: RouteTaken;
  readonly bytes: Uint8Array;
  readonly periodPs: number;
  left: number;
  timer: ProtocolTimer | undefined;
}

const subnetClassVersion = 2;
const tries = 10;
const defaultPkey = 0xffff;
const isReversible = 1;

export class PathQueries {
  readonly #parts: PathQueriesParts;
  readonly #pending = new Map<bigint, Pending>();
  #lastTransaction = 0n;

  constructor(parts: PathQueriesParts) {
    this.#parts = parts;
  }

  /** Queries not answered yet. */
  get pendingCount(): number {
    return this.#pending.size;
  }

  /** @param sourceGid @param destinationGid 16 bytes each */
  ask(
    cpu: Cpu,
    sourceGid: Uint8Array,
    destinationGid: Uint8Array,
    timeoutMs: number,
    taken: RouteTaken,
  ): void {
    const transaction = ++this.#lastTransaction;
    const bytes = queryOf(transaction, sourceGid, destinationGid);
    const periodPs = msToPs(timeoutMs) / tries;
    const pending = { taken, bytes, periodPs, left: tries, timer: undefined };
    this.#pending.set(transaction, pending);
    this.#try(cpu, transaction, pending);
  }

  /** Handles a MAD of subnet administration; drops it if it answers no query. */
  receive(_cpu: Cpu, { bytes }: ReceivedMad): void {
    const view = viewOf(bytes);
    const { method, transactionId, status } = mad.fields;
    if (method.get(view, 0) !== MadMethod.GET_RESP) return;
    const isGood = status.get(view, 0) === MadStatus.OK;
    this.#end(transactionId.get(view, 0), isGood ? pathOf(bytes) : errnoNumbers.EINVAL);
  }

  /** The device is being removed: no query will be answered. */
  close(): void {
    for (const { timer } of this.#pending.values()) timer?.cancel();
    this.#pending.clear();
  }

  #try(cpu: Cpu, transaction: bigint, pending: Pending): void {
    const { timers, manager, send } = this.#parts;
    send(cpu, pending.bytes, manager);
    pending.left--;
    pending.timer = timers.after(pending.periodPs, (thread) => {
      if (pending.left > 0) this.#try(thread, transaction, pending);
      else this.#end(transaction, errnoNumbers.ETIMEDOUT);
    });
  }

  #end(transaction: bigint, outcome: Path | number): void {
    const pending = this.#pending.get(transaction);
    if (pending === undefined) return;
    pending.timer?.cancel();
    this.#pending.delete(transaction);
    pending.taken(outcome);
  }
}

function queryOf(transactionId: bigint, sourceGid: Uint8Array, destinationGid: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(madBytes);
  mad.encodeInto(
    {
      baseVersion: 1,
      managementClass: MadClass.SUBN_ADM,
      classVersion: subnetClassVersion,
      method: MadMethod.GET,
      transactionId,
      attributeId: SubnetAttribute.PATH_RECORD,
    },
    bytes,
  );
  const { SOURCE_GID, DESTINATION_GID, REVERSIBLE, PATH_COUNT, PKEY } = PathComponent;
  const mask = SOURCE_GID | DESTINATION_GID | REVERSIBLE | PATH_COUNT | PKEY;
  subnetAdministration.fields.componentMask.set(viewOf(bytes), 0, mask);
  const wanted = { sourceGid, destinationGid, reversible: isReversible, pathCount: 1, pkey: defaultPkey };
  pathRecord.encodeInto(wanted, bytes, subnetDataOffset);
  return bytes;
}

function pathOf(bytes: Uint8Array): Path {
  const record = pathRecord.decode(bytes.subarray(subnetDataOffset, subnetDataOffset + pathRecord.sizeBytes));
  return {
    local: { lid: record.sourceLid, gid: Uint8Array.from(record.sourceGid) },
    remote: { lid: record.destinationLid, gid: Uint8Array.from(record.destinationGid) },
    serviceLevel: record.serviceLevel,
    mtu: record.mtu,
    rate: record.rate,
    packetLifeTime: record.packetLifeTime,
  };
}
