/**
 * A small reference model of the verbs: the allowed ends of a work request, given its flaw and the state of its
 * connection. Source: InfiniBand Architecture Specification 1.3, volume 1, 9.7.5.2, 9.9.2, 9.9.3, 10.6.5, 10.6.7 and
 * 10.10, 11.6.2; written from the standard, not from the device.
 */
import { psPerNs } from '../base/index.ts';
import type { ParameterValues } from '../machine/profile/index.ts';
import * as ibv from '../userlib/index.ts';
import type { Flaw } from './story.ts';

/** Errors with which a flawed request ends at the requester, if it is the first to fail on its QP. */
export const endOfFlaw: Readonly<Record<Flaw, readonly number[]>> = {
  none: [],
  localKey: [ibv.IBV_WC_LOC_PROT_ERR],
  localBounds: [ibv.IBV_WC_LOC_PROT_ERR],
  localRight: [ibv.IBV_WC_LOC_PROT_ERR, ibv.IBV_WC_LOC_ACCESS_ERR],
  remoteKey: [ibv.IBV_WC_REM_ACCESS_ERR],
  remoteBounds: [ibv.IBV_WC_REM_ACCESS_ERR],
  remoteRight: [ibv.IBV_WC_REM_ACCESS_ERR],
  // A function that the responder's QP does not support (table 60).
  qpRight: [ibv.IBV_WC_REM_INV_REQ_ERR],
  foreignKey: [ibv.IBV_WC_REM_ACCESS_ERR],
  misaligned: [ibv.IBV_WC_REM_INV_REQ_ERR],
  tooLong: [ibv.IBV_WC_REM_INV_REQ_ERR],
  oldLocalKey: [ibv.IBV_WC_LOC_PROT_ERR],
  oldRemoteKey: [ibv.IBV_WC_REM_ACCESS_ERR],
  windowKey: [ibv.IBV_WC_REM_ACCESS_ERR],
  windowBounds: [ibv.IBV_WC_REM_ACCESS_ERR],
  windowRight: [ibv.IBV_WC_REM_ACCESS_ERR],
  bindBounds: [ibv.IBV_WC_MW_BIND_ERR],
  bindRight: [ibv.IBV_WC_MW_BIND_ERR],
  // A memory management operation error (11.6.2).
  invalidKey: [ibv.IBV_WC_MW_BIND_ERR],
  // The responder sends no response and accepts nothing more (9.9.3, class J).
  remoteInvalidKey: [ibv.IBV_WC_RETRY_EXC_ERR],
};

/** Ends of a request whose window is taken back meanwhile; a READ may fail in the middle of its answer. */
export const endsOfLostWindow: readonly number[] = [ibv.IBV_WC_REM_ACCESS_ERR, ibv.IBV_WC_REM_OP_ERR];

/** Flaws of requests that carry no data, or whose length does not matter. */
export const isFlawOfAnyLength = (flaw: Flaw): boolean =>
  ['misaligned', 'qpRight', 'bindBounds', 'bindRight', 'invalidKey', 'remoteInvalidKey'].includes(flaw);

/** Flaws that the responder finds: it answers with a NAK and goes to the error state as well (9.9.3, class C). */
export const isFoundByResponder = (flaw: Flaw): boolean =>
  flaw !== 'none' && !flawsOfRequester.includes(flaw);

const flawsOfRequester: readonly Flaw[] = [
  'localKey',
  'localBounds',
  'localRight',
  'oldLocalKey',
  'bindBounds',
  'bindRight',
  'invalidKey',
];

/** Ends of a receive that is too short for the message, or whose buffers are invalid. */
export const endsOfBadReceive: readonly number[] = [
  ibv.IBV_WC_LOC_LEN_ERR,
  ibv.IBV_WC_LOC_PROT_ERR,
  ibv.IBV_WC_LOC_QP_OP_ERR,
];

/** End of a receive whose message names a key that must not be invalidated. */
export const endOfBadInvalidation: number = ibv.IBV_WC_REM_INV_REQ_ERR;

/** Ends of its sender (9.9.3: remote operational error, invalid request). */
export const endsOfBadReceiver: readonly number[] = [ibv.IBV_WC_REM_OP_ERR, ibv.IBV_WC_REM_INV_REQ_ERR];

/** RNR NAK timer by code, in microseconds × 100 (IBTA 9.7.5.2.8, table 45). */
const rnrDelays = [
  65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072,
  4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
];

const rnrUnitNs = 10_000;

/**
 * Least time that a requester waits after an RNR NAK of this timer code.
 * @param set of the story: a card may count in another unit than the standard's hundredth of a millisecond
 */
export const rnrDelayPs = (code: number, set: ParameterValues = {}): number =>
  rnrDelays[code]! * Number(set['hca.rnrTimerUnitNs'] ?? rnrUnitNs) * psPerNs;
