/**
 * The CM of a device, as ib_cm: finds the connection that a message is for, makes one for each new REQ that has a listener,
 * and answers for connections that do not exist.
 *
 * A peer's connection is known by its CA's GUID with its communication ID, and by the GUID with its QP. A REQ that repeats ID,
 * QP and Starting PSN is a duplicate. A REQ that repeats the ID or the QP but differs otherwise comes from a peer that has lost
 * the old connection, e.g. by a reset of its device: the old one is stale (IBTA vol 1, 12.9.8.3.1). Linux compares only the ID,
 * because its own IDs are not reused while the kernel runs; another CM may reuse them. Source: IBTA vol 1, 12.9; Linux 6.1,
 * drivers/infiniband/core/cm.c, for what the standard leaves open.
 */
import { RejectReason } from '../../abi/index.ts';
import type { Cpu, DriverPlatform } from '../platform.ts';
import { ProtocolTimers } from '../protocol-timers.ts';
import {
  Answered,
  CmAttribute,
  type CmMessage,
  cmHeaderOf,
  cmMad,
  decodeCm,
  transactionIdOf,
} from './cm-mad.ts';
import type { CommunicationIds } from './communication-ids.ts';
import { type CmCore, Connection } from './connection.ts';
import type { CmDrop, CmListener } from './connector.ts';
import type { MadAddress, ReceivedMad } from './management-queue-pair.ts';
import type { Path } from './path.ts';
import { incomingRequestOf } from './request-addresses.ts';

export interface ConnectionManagerSetup {
  readonly platform: DriverPlatform;
  readonly caGuid: bigint;
  readonly ids: CommunicationIds;
  /** Listeners by service ID: they belong to the host, and outlive this device. */
  readonly listeners: ReadonlyMap<bigint, CmListener<Connection>>;
  /** Place of the GID from which packets go to another by a version of RoCE; left out on InfiniBand. */
  readonly gidIndexTo?: ((destinationGid: Uint8Array, isRoutable: boolean) => number) | undefined;
  send(cpu: Cpu, bytes: Uint8Array, to: MadAddress): void;
}

const keyOf = (guid: bigint, number: number): string => `${guid}:${number}`;

export class ConnectionManager implements CmCore {
  readonly timers: ProtocolTimers;
  readonly caGuid: bigint;
  /** Messages without effect, or only answered again, by reason. */
  readonly dropped: Record<CmDrop, number> = {
    malformed: 0,
    unmatched: 0,
    unexpected: 0,
    duplicate: 0,
    stale: 0,
    backlogFull: 0,
    noListener: 0,
  };
  readonly #setup: ConnectionManagerSetup;
  readonly #connections = new Map<number, Connection>();
  readonly #byRemoteId = new Map<string, Connection>();
  readonly #byRemoteQp = new Map<string, Connection>();

  constructor(setup: ConnectionManagerSetup) {
    this.#setup = setup;
    this.caGuid = setup.caGuid;
    this.timers = new ProtocolTimers(setup.platform, 'ib_cm');
  }

  /** Connections in any state but Idle. */
  get connectionCount(): number {
    return this.#connections.size;
  }

  /** A connection of the active side. */
  newConnection(path: Path): Connection {
    const localId = this.#newId();
    return this.#add(new Connection(this, 'active', localId, path, transactionIdOf(localId)));
  }

  send(cpu: Cpu, bytes: Uint8Array, to: MadAddress): void {
    this.#setup.send(cpu, bytes, to);
  }

  randomBits(): number {
    return this.#setup.platform.randomBits();
  }

  count(reason: CmDrop): void {
    this.dropped[reason]++;
  }

  remember(connection: Connection): Connection | undefined {
    const { remoteGuid, remoteId, remoteQpn } = connection;
    const old = this.#holderOf(remoteGuid, remoteId, remoteQpn);
    if (old !== undefined) return old;
    this.#byRemoteId.set(keyOf(remoteGuid, remoteId), connection);
    this.#byRemoteQp.set(keyOf(remoteGuid, remoteQpn), connection);
    return undefined;
  }

  forget(connection: Connection): void {
    const { localId, remoteGuid, remoteId, remoteQpn } = connection;
    this.#connections.delete(localId);
    const [byId, byQp] = [keyOf(remoteGuid, remoteId), keyOf(remoteGuid, remoteQpn)];
    if (this.#byRemoteId.get(byId) === connection) this.#byRemoteId.delete(byId);
    if (this.#byRemoteQp.get(byQp) === connection) this.#byRemoteQp.delete(byQp);
  }

  /** The device was removed: stops sending and all timers, and drops all connections. */
  close(): void {
    this.timers.close();
    this.#connections.clear();
    this.#byRemoteId.clear();
    this.#byRemoteQp.clear();
  }

  /** Handles a MAD of class 7 that has arrived. */
  receive(cpu: Cpu, received: ReceivedMad): void {
    const { bytes, from } = received;
    const header = cmHeaderOf(bytes);
    if (header === undefined) return this.count('malformed');
    const { attributeId, transactionId } = header;
    switch (attributeId) {
      case CmAttribute.REQ:
        return this.#request(cpu, decodeCm(attributeId, bytes), transactionId, received);
      case CmAttribute.MRA:
        return this.#find(decodeCm(attributeId, bytes), (to, mra) => to.receivedMra(mra), true);
      case CmAttribute.REP:
        return this.#find(decodeCm(attributeId, bytes), (to, rep) => to.receivedRep(cpu, rep), true);
      case CmAttribute.RTU:
        return this.#find(decodeCm(attributeId, bytes), (to) => to.receivedRtu(cpu));
      case CmAttribute.REJ:
        return this.#reject(cpu, decodeCm(attributeId, bytes));
      case CmAttribute.DREQ:
        return this.#disconnect(cpu, decodeCm(attributeId, bytes), transactionId, from);
      case CmAttribute.DREP:
        return this.#find(decodeCm(attributeId, bytes), (to) => to.receivedDrep(cpu));
      default:
    }
  }

  #newId(): number {
    return this.#setup.ids.next((id) => this.#connections.has(id));
  }

  /**
   * The connection that uses a peer's communication ID or QP. A connection in Timewait does not: its peer may use both again
   * (Linux 6.1, cm.c: cm_enter_timewait removes them from its tables).
   */
  #holderOf(guid: bigint, remoteId: number, remoteQpn: number): Connection | undefined {
    const byId = this.#byRemoteId.get(keyOf(guid, remoteId));
    if (byId !== undefined && byId.state !== 'Timewait') return byId;
    const byQp = this.#byRemoteQp.get(keyOf(guid, remoteQpn));
    return byQp?.state === 'Timewait' ? undefined : byQp;
  }

  #add(connection: Connection): Connection {
    this.#connections.set(connection.localId, connection);
    return connection;
  }

  /** The connection that a message's pair of IDs names; before the peer's first answer, the peer's ID may have any value. */
  #match(ids: { localCommId: number; remoteCommId: number }, isFirst: boolean): Connection | undefined {
    const connection = this.#connections.get(ids.remoteCommId);
    if (connection === undefined) return undefined;
    const isPeer = connection.remoteId === ids.localCommId || (isFirst && connection.remoteId === 0);
    return isPeer ? connection : undefined;
  }

  #find<M extends { localCommId: number; remoteCommId: number }>(
    message: M,
    deliver: (connection: Connection, message: M) => void,
    isFirst = false,
  ): void {
    const connection = this.#match(message, isFirst);
    if (connection === undefined) this.count('unmatched');
    else deliver(connection, message);
  }

  #request(
    cpu: Cpu,
    request: CmMessage<typeof CmAttribute.REQ>,
    transactionId: bigint,
    received: ReceivedMad,
  ): void {
    const { from } = received;
    const { localCaGuid, localCommId, localQpn, serviceId } = request;
    const known = this.#byRemoteId.get(keyOf(localCaGuid, localCommId));
    if (known?.isAskedBy(request)) return known.requestAgain(cpu);
    const old = this.#holderOf(localCaGuid, localCommId, localQpn);
    const refuse = (reason: number): void => this.#refuse(cpu, localCommId, reason, transactionId, from);
    if (old !== undefined) {
      this.count('stale');
      refuse(RejectReason.STALE_CONN);
      return old.becomeStale(cpu);
    }
    const listener = this.#setup.listeners.get(serviceId);
    if (listener === undefined) {
      this.count('noListener');
      return refuse(RejectReason.INVALID_SERVICE_ID);
    }
    const path = pathOf(request, received, this.#setup.gidIndexTo);
    const connection = this.#add(new Connection(this, 'passive', this.#newId(), path, transactionId));
    connection.requested(request);
    this.remember(connection);
    const incoming = incomingRequestOf(request);
    const answer =
      incoming === undefined ? RejectReason.UNSUPPORTED : listener.requested(cpu, incoming, connection);
    if (answer === 'taken') return;
    connection.drop();
    if (answer === 'full') this.count('backlogFull');
    else refuse(answer);
  }

  /** A REJ for a REQ that has no connection. */
  #refuse(cpu: Cpu, remoteCommId: number, reason: number, transactionId: bigint, to: MadAddress): void {
    const values = { localCommId: 0, remoteCommId, messageRejected: Answered.REQ, reason };
    this.send(cpu, cmMad(CmAttribute.REJ, transactionId, values), to);
  }

  /** A peer that has timed out identifies itself by its GUID, because it may have received no answer from here: 12.6.7.2. */
  #reject(cpu: Cpu, message: CmMessage<typeof CmAttribute.REJ>): void {
    const { reason, additionalInformation, localCommId, messageRejected } = message;
    let connection: Connection | undefined;
    if (reason === RejectReason.TIMEOUT && message.remoteCommId === 0) {
      const view = new DataView(additionalInformation.buffer, additionalInformation.byteOffset);
      connection = this.#byRemoteId.get(keyOf(view.getBigUint64(0), localCommId));
    } else connection = this.#match(message, messageRejected === Answered.REQ);
    if (connection === undefined) this.count('unmatched');
    else connection.receivedRej(cpu, message);
  }

  /** Answers a DREQ of a connection that no longer exists, so that the peer need not repeat it. */
  #disconnect(
    cpu: Cpu,
    message: CmMessage<typeof CmAttribute.DREQ>,
    transactionId: bigint,
    from: MadAddress,
  ): void {
    const connection = this.#match(message, false);
    if (connection !== undefined) return connection.receivedDreq(cpu, message, transactionId);
    this.count('unmatched');
    const ids = { localCommId: message.remoteCommId, remoteCommId: message.localCommId };
    this.send(cpu, cmMad(CmAttribute.DREP, transactionId, ids), from);
  }
}

/**
 * The path back, from the path that the peer sent, the sender of the MAD and its version of RoCE (Linux 6.1, cm.c
 * cm_req_handler: by the type of the GID that received it).
 */
function pathOf(
  request: CmMessage<typeof CmAttribute.REQ>,
  { from, isRoutable = false }: ReceivedMad,
  gidIndexTo: ConnectionManagerSetup['gidIndexTo'],
): Path {
  const { roce } = from;
  const sgidIndex = gidIndexTo?.(request.primaryLocalGid, isRoutable);
  return {
    local: { lid: request.primaryRemoteLid, gid: request.primaryRemoteGid },
    remote: { lid: from.lid, gid: request.primaryLocalGid },
    serviceLevel: request.primaryServiceLevel,
    mtu: request.pathMtu,
    rate: request.primaryPacketRate,
    packetLifeTime: Math.max(0, request.primaryLocalAckTimeout - 1),
    ...(roce === undefined || sgidIndex === undefined
      ? {}
      : { roce: { sgidIndex, hopLimit: request.primaryHopLimit, mac: roce.mac } }),
  };
}
