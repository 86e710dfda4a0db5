/** EQEs as the event writer uses them. `at` is the place of an EQE that {@link EventFormat.begin} has begun. */
import type { PortInfoReport } from '../events/index.ts';
import type { TcpReport } from '../iwarp/tcp/index.ts';
import type { PageRequest } from '../memory/index.ts';
import type { Cqn, Qpn } from '../objects/index.ts';

export interface EventFormat {
  /** Bytes of an EQE: a power of two. */
  readonly entryBytes: number;
  /** Begins an EQE where all is zero: its type is one of EventType. */
  begin(view: DataView, at: number, type: number, subtype: number): void;
  /** Hands the EQE to software on a pass over the EQ of parity `pass`, 0 or 1. */
  own(view: DataView, at: number, pass: number): void;
  typeAt(view: DataView, at: number): number;
  /** CQ of a completion event. */
  cqnAt(view: DataView, at: number): Cqn;
  completion(view: DataView, at: number, cqn: Cqn): void;
  /** Writes the EQE of a command completion; the output parameter is given as two words. */
  command(view: DataView, at: number, token: number, status: number, high: number, low: number): void;
  queuePair(view: DataView, at: number, qpn: Qpn): void;
  sharedReceiveQueue(view: DataView, at: number, srqn: number): void;
  cqError(view: DataView, at: number, cqn: Cqn, syndrome: number): void;
  /** Subtype of a page request. */
  pageRequestSubtype(side: number, isWrite: boolean): number;
  pageRequest(view: DataView, at: number, request: PageRequest): void;
  port(view: DataView, at: number, port: number): void;
  /** Something happened to a TCP connection; its kind is the event's subtype. */
  tcpConnection(view: DataView, at: number, report: TcpReport): void;
  portInfo(view: DataView, at: number, info: PortInfoReport): void;
  portTable(view: DataView, at: number, port: number, block: number, entryMask: number): void;
}
