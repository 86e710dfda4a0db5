/**
 * Legal transitions of a QP: the source and target states of each command, and the context fields that it sets.
 *
 * The context in the mailbox is mostly zero: fields neither required by the transition nor selected by a bit of the
 * optional-parameter mask keep their stored value. Source: interface sheet 3.17.
 */

import { QpState } from './qpc.ts';
import { type AddressPathField, addressPathFields, type QpcFieldPath } from './qpc-fields.ts';

/** Bit numbers of the optional-parameter mask. */
export const OptionalParameter = {
  ALT_ADDR_PATH: 0,
  RRE: 1,
  RAE: 2,
  RWE: 3,
  PKEY_INDEX: 4,
  QKEY: 5,
  MIN_RNR_NAK: 6,
  PRIMARY_ADDR_PATH: 7,
  SRA_MAX: 8,
  RRA_MAX: 9,
  PM_STATE: 10,
  RETRY_COUNT: 12,
  RNR_RETRY: 13,
  ACK_TIMEOUT: 14,
  SCHED_QUEUE: 16,
  COUNTER_INDEX: 20,
  VLAN_STRIPPING: 21,
} as const;
export type OptionalParameter = (typeof OptionalParameter)[keyof typeof OptionalParameter];

/** A path selected as a whole is replaced without these two, which have bits of their own. */
const ownBits: readonly AddressPathField[] = ['pkeyIndex', 'ackTimeout'];
const wholePath = addressPathFields.filter((name) => !ownBits.includes(name));
const primaryPath = wholePath.map((name): QpcFieldPath => `primaryPath.${name}`);
const alternatePath = addressPathFields.map((name): QpcFieldPath => `alternatePath.${name}`);

/** The context fields selected by each mask bit. */
export const optionalParameterFields: { readonly [Bit in OptionalParameter]: readonly QpcFieldPath[] } = {
  [OptionalParameter.ALT_ADDR_PATH]: alternatePath,
  [OptionalParameter.RRE]: ['remoteReadEnabled'],
  [OptionalParameter.RAE]: ['remoteAtomicEnabled'],
  [OptionalParameter.RWE]: ['remoteWriteEnabled'],
  [OptionalParameter.PKEY_INDEX]: ['primaryPath.pkeyIndex'],
  [OptionalParameter.QKEY]: ['qkey'],
  [OptionalParameter.MIN_RNR_NAK]: ['minRnrNak'],
  [OptionalParameter.PRIMARY_ADDR_PATH]: primaryPath,
  [OptionalParameter.SRA_MAX]: ['logMaxRequesterReads'],
  [OptionalParameter.RRA_MAX]: ['logMaxResponderReads'],
  [OptionalParameter.PM_STATE]: ['pathMigration'],
  [OptionalParameter.RETRY_COUNT]: ['retryCount'],
  [OptionalParameter.RNR_RETRY]: ['rnrRetryCount'],
  [OptionalParameter.ACK_TIMEOUT]: ['primaryPath.ackTimeout'],
  [OptionalParameter.SCHED_QUEUE]: ['primaryPath.scheduleQueue'],
  [OptionalParameter.COUNTER_INDEX]: ['primaryPath.counterIndex'],
  [OptionalParameter.VLAN_STRIPPING]: ['keepVlanTag'],
};

export interface QpTransition {
  readonly from: readonly QpState[];
  readonly to: QpState;
  /** Fields the command always sets. */
  readonly required: readonly QpcFieldPath[];
  /** Whether the mailbox's mask selects further fields. */
  readonly takesOptional: boolean;
}

/**
 * Every field RST2INIT gives a fresh context. Q_Key and access bits are set regardless of the mask: the context was zero
 * before, and drivers that send no mask fill them in. The port is zero here, except from mlx4_en.
 */
const initFields: readonly QpcFieldPath[] = [
  'serviceType',
  'isRssIndirection',
  'pathMigration',
  'pd',
  'pathMtu',
  'logMaxMessage',
  'rqSizeBorrow',
  'rqLogCount',
  'rqLogStride16',
  'sqNoPrefetch',
  'sqLogCount',
  'sqLogStride16',
  'reservedLkeyEnabled',
  'uarPage',
  'localQpn',
  'primaryPath.pkeyIndex',
  'primaryPath.scheduleQueue',
  'ackRequestFrequency',
  'fastRegisterEnabled',
  'sendCqn',
  'pageOffset64',
  'ric',
  'xrcDomain',
  'receiveCqn',
  'doorbellRecordAddress',
  'qkey',
  'srqAttached',
  'srqn',
  'remoteReadEnabled',
  'remoteWriteEnabled',
  'remoteAtomicEnabled',
  'keepVlanTag',
  'keepFcs',
  'inlineReceive',
  'headerSeparation',
  'logPageSize4k',
  'mttAddress',
];

/** Fields that make a QP ready to receive; UD and special QPs need only schedule queue, link type and RoCE mode. */
const rtrFields: readonly QpcFieldPath[] = [
  'pathMtu',
  'logMaxMessage',
  'roceMode',
  'remoteQpn',
  ...primaryPath,
  'logMaxResponderReads',
  'minRnrNak',
  'nextReceivePsn',
];

const rtsFields: readonly QpcFieldPath[] = [
  'primaryPath.ackTimeout',
  'logMaxRequesterReads',
  'retryCount',
  'rnrRetryCount',
  'nextSendPsn',
  'roceEntropy',
];

const anyState: readonly QpState[] = Object.values(QpState);
const { RST, INIT, RTR, RTS, SQER, SQD, ERR, SQ_DRAINING } = QpState;
const optionalOnly = { required: [], takesOptional: true } as const;
const stateOnly = { required: [], takesOptional: false } as const;

/** The table, in the order of the sheet. A command in another source state ends with status BAD_QP_STATE. */
export const qpTransitions = {
  RST2INIT_QP: { from: [RST], to: INIT, required: initFields, takesOptional: true },
  INIT2INIT_QP: { from: [INIT], to: INIT, ...optionalOnly },
  INIT2RTR_QP: { from: [INIT], to: RTR, required: rtrFields, takesOptional: true },
  RTR2RTS_QP: { from: [RTR], to: RTS, required: rtsFields, takesOptional: true },
  RTS2RTS_QP: { from: [RTS], to: RTS, ...optionalOnly },
  SQERR2RTS_QP: { from: [SQER], to: RTS, ...optionalOnly },
  SQD2SQD_QP: { from: [SQD], to: SQD, ...optionalOnly },
  SQD2RTS_QP: { from: [SQD, SQ_DRAINING], to: RTS, ...optionalOnly },
  RTS2SQD_QP: { from: [RTS], to: SQD, ...stateOnly },
  '2ERR_QP': { from: anyState, to: ERR, ...stateOnly },
  '2RST_QP': { from: anyState, to: RST, ...stateOnly },
} as const satisfies Readonly<Record<string, QpTransition>>;
export type QpTransitionName = keyof typeof qpTransitions;

/** The fields that a transition sets from the mailbox, given its optional-parameter mask. */
export function fieldsSetBy(name: QpTransitionName, optionalParameterMask: number): readonly QpcFieldPath[] {
  const transition: QpTransition = qpTransitions[name];
  if (!transition.takesOptional) return transition.required;
  const selected = Object.values(OptionalParameter).filter((bit) => (optionalParameterMask >>> bit) & 1);
  return [...transition.required, ...selected.flatMap((bit) => optionalParameterFields[bit])];
}
