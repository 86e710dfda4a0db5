/** The ports of the translator and the context caches, one for each block that uses them. */
import type { Cycles } from '../../../base/index.ts';

/** A user of the translator or of a context cache. */
export interface MissWaiter {
  /** Wakes the user: the missed entry has been read, or can be read; it retries at `cycle` or later. */
  wake(cycle: Cycles): void;
  /** Notifies a user that continues with other work: the context that it missed is on chip from `cycle` on. */
  contextFetched?(slot: number, cycle: Cycles): void;
}

/** Users of the translator and the context caches: each waits for at most one miss. */
export const PORT_WQE_FETCH = 0;
export const PORT_REQUESTER = 1;
export const PORT_RECEIVER = 2;
export const PORT_RESPONSE = 3;
export const PORT_RECEIVE_FETCH = 4;
export const PORT_COMPLETION = 5;
export const PORT_COUNT = 6;
/** Their names in reports. */
export const portNames = [
  'wqeFetch',
  'requester',
  'receiver',
  'response',
  'receiveFetch',
  'completion',
] as const;

/** Name of a port of the translator: of its user, or of a look-up ahead from {@link PORT_COUNT} on. */
export const portNameOf = (port: number): string => portNames[port] ?? `ahead${port - PORT_COUNT}`;

/** The users of the translator, each by the name of its port. */
export type TranslatorUsers = Readonly<Record<(typeof portNames)[number], MissWaiter>>;

/** Users of each cache, by kind of context. */
interface UsersByKind {
  readonly qpc: 'requester' | 'receiver';
  readonly cqc: 'completion';
  readonly srqc: 'receiveFetch';
  readonly eqc: 'eventWriter';
  /** Contexts of TCP connections: see ../iwarp/tcp. */
  readonly auxc: 'tcpReceive' | 'tcpSend';
}
export type ContextKind = keyof UsersByKind;
export type ContextUser<K extends ContextKind> = UsersByKind[K];

/** The numbers of their ports. */
export const contextUsers: { readonly [K in ContextKind]: Readonly<Record<ContextUser<K>, number>> } = {
  qpc: { requester: PORT_REQUESTER, receiver: PORT_RECEIVER },
  cqc: { completion: PORT_COMPLETION },
  srqc: { receiveFetch: PORT_RECEIVE_FETCH },
  eqc: { eventWriter: 0 },
  auxc: { tcpReceive: 0, tcpSend: 1 },
};
