/**
 * Which attributes a QP transition takes: required and optional ones by type, and the command that makes it.
 *
 * A modify that lacks a required attribute, has one that the transition does not accept, or requests a transition that does not
 * exist, returns EINVAL and changes nothing. Sources: InfiniBand Architecture volume 1, 11.2.5.2 (table 96 and following);
 * Linux ib_modify_qp_is_ok; interface sheet 3.17 for the commands.
 */
import type { CommandName } from '../abi/index.ts';
import { KernelError } from './kernel-error.ts';
import { QpAttrMask, QpStateVerb, QpTypeVerb } from './uapi.ts';

const { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_SQE, IBV_QPS_ERR } =
  QpStateVerb;
const {
  IBV_QPT_RC,
  IBV_QPT_UC,
  IBV_QPT_UD,
  IBV_QPT_XRC_SEND: XRC_SEND,
  IBV_QPT_XRC_RECV: XRC_RECV,
} = QpTypeVerb;
const {
  IBV_QP_STATE,
  IBV_QP_CUR_STATE,
  IBV_QP_EN_SQD_ASYNC_NOTIFY,
  IBV_QP_ACCESS_FLAGS: ACCESS,
  IBV_QP_PKEY_INDEX: PKEY,
  IBV_QP_PORT: PORT,
  IBV_QP_QKEY: QKEY,
  IBV_QP_AV: AV,
  IBV_QP_PATH_MTU: MTU,
  IBV_QP_TIMEOUT: TIMEOUT,
  IBV_QP_RETRY_CNT: RETRY,
  IBV_QP_RNR_RETRY: RNR_RETRY,
  IBV_QP_RQ_PSN: RQ_PSN,
  IBV_QP_MAX_QP_RD_ATOMIC: MAX_RD,
  IBV_QP_MIN_RNR_TIMER: RNR_TIMER,
  IBV_QP_SQ_PSN: SQ_PSN,
  IBV_QP_MAX_DEST_RD_ATOMIC: MAX_DEST_RD,
  IBV_QP_DEST_QPN: DEST_QPN,
} = QpAttrMask;

interface AttributeRule {
  readonly required: number;
  readonly optional: number;
}

/** A transition: the command, and its rule for each QP type that has it. */
interface TransitionRow {
  readonly from: QpStateVerb;
  readonly to: QpStateVerb;
  readonly command: CommandName;
  readonly rules: { readonly [type in QpTypeVerb]?: AttributeRule };
}

const rule = (required: number, optional = 0): AttributeRule => ({ required, optional });
const connected = (all: AttributeRule): TransitionRow['rules'] => ({
  [IBV_QPT_RC]: all,
  [IBV_QPT_UC]: all,
  [XRC_SEND]: all,
  [XRC_RECV]: all,
});

const toInit = connected(rule(PKEY | PORT | ACCESS));
const inInit = connected(rule(0, PKEY | PORT | ACCESS));
const inRts: TransitionRow['rules'] = {
  [IBV_QPT_RC]: rule(0, IBV_QP_CUR_STATE | ACCESS | RNR_TIMER),
  [IBV_QPT_UC]: rule(0, IBV_QP_CUR_STATE | ACCESS),
  [IBV_QPT_UD]: rule(0, IBV_QP_CUR_STATE | QKEY),
  [XRC_SEND]: rule(0, IBV_QP_CUR_STATE | ACCESS),
  [XRC_RECV]: rule(0, IBV_QP_CUR_STATE | ACCESS | RNR_TIMER),
};
const drain = rule(0, IBV_QP_EN_SQD_ASYNC_NOTIFY);

/** All transitions except those to RESET and ERR, which every state has and which accept no attributes. */
const transitions: readonly TransitionRow[] = [
  {
    from: IBV_QPS_RESET,
    to: IBV_QPS_INIT,
    command: 'RST2INIT_QP',
    rules: { ...toInit, [IBV_QPT_UD]: rule(PKEY | PORT | QKEY) },
  },
  {
    from: IBV_QPS_INIT,
    to: IBV_QPS_INIT,
    command: 'INIT2INIT_QP',
    rules: { ...inInit, [IBV_QPT_UD]: rule(0, PKEY | PORT | QKEY) },
  },
  {
    from: IBV_QPS_INIT,
    to: IBV_QPS_RTR,
    command: 'INIT2RTR_QP',
    rules: {
      [IBV_QPT_RC]: rule(AV | MTU | DEST_QPN | RQ_PSN | MAX_DEST_RD | RNR_TIMER, ACCESS | PKEY),
      [IBV_QPT_UC]: rule(AV | MTU | DEST_QPN | RQ_PSN, ACCESS | PKEY),
      [IBV_QPT_UD]: rule(0, PKEY | QKEY),
      [XRC_SEND]: rule(AV | MTU | DEST_QPN | RQ_PSN, ACCESS | PKEY),
      [XRC_RECV]: rule(AV | MTU | DEST_QPN | RQ_PSN | MAX_DEST_RD | RNR_TIMER, ACCESS | PKEY),
    },
  },
  {
    from: IBV_QPS_RTR,
    to: IBV_QPS_RTS,
    command: 'RTR2RTS_QP',
    rules: {
      [IBV_QPT_RC]: rule(
        TIMEOUT | RETRY | RNR_RETRY | SQ_PSN | MAX_RD,
        IBV_QP_CUR_STATE | ACCESS | RNR_TIMER,
      ),
      [IBV_QPT_UC]: rule(SQ_PSN, IBV_QP_CUR_STATE | ACCESS),
      [IBV_QPT_UD]: rule(SQ_PSN, IBV_QP_CUR_STATE | QKEY),
      [XRC_SEND]: rule(TIMEOUT | RETRY | RNR_RETRY | SQ_PSN | MAX_RD, IBV_QP_CUR_STATE | ACCESS),
      [XRC_RECV]: rule(TIMEOUT | SQ_PSN, IBV_QP_CUR_STATE | ACCESS | RNR_TIMER),
    },
  },
  { from: IBV_QPS_RTS, to: IBV_QPS_RTS, command: 'RTS2RTS_QP', rules: inRts },
  {
    from: IBV_QPS_RTS,
    to: IBV_QPS_SQD,
    command: 'RTS2SQD_QP',
    rules: { ...connected(drain), [IBV_QPT_UD]: drain },
  },
  { from: IBV_QPS_SQD, to: IBV_QPS_RTS, command: 'SQD2RTS_QP', rules: inRts },
  {
    from: IBV_QPS_SQD,
    to: IBV_QPS_SQD,
    command: 'SQD2SQD_QP',
    rules: {
      [IBV_QPT_RC]: rule(
        0,
        PORT | AV | TIMEOUT | RETRY | RNR_RETRY | MAX_RD | MAX_DEST_RD | ACCESS | PKEY | RNR_TIMER,
      ),
      [IBV_QPT_UC]: rule(0, AV | ACCESS | PKEY),
      [IBV_QPT_UD]: rule(0, PKEY | QKEY),
      [XRC_SEND]: rule(0, PORT | AV | TIMEOUT | RETRY | RNR_RETRY | MAX_RD | ACCESS | PKEY),
      [XRC_RECV]: rule(0, PORT | AV | TIMEOUT | MAX_DEST_RD | ACCESS | PKEY | RNR_TIMER),
    },
  },
  {
    from: IBV_QPS_SQE,
    to: IBV_QPS_RTS,
    command: 'SQERR2RTS_QP',
    rules: {
      [IBV_QPT_UC]: rule(0, IBV_QP_CUR_STATE | ACCESS),
      [IBV_QPT_UD]: rule(0, IBV_QP_CUR_STATE | QKEY),
    },
  },
];

/** Attributes any transition may name. */
const always = IBV_QP_STATE | IBV_QP_CUR_STATE;

/**
 * The command for a transition with these attributes; `undefined` for RESET to RESET, which needs none. Throws EINVAL if the
 * transition does not exist or the mask does not fit it.
 */
export function commandForTransition(
  type: QpTypeVerb,
  from: QpStateVerb,
  to: QpStateVerb,
  mask: number,
): CommandName | undefined {
  if (to === IBV_QPS_RESET || to === IBV_QPS_ERR) {
    checkMask(rule(0), from, to, mask);
    if (from === IBV_QPS_RESET && to === IBV_QPS_RESET) return undefined;
    return to === IBV_QPS_RESET ? '2RST_QP' : '2ERR_QP';
  }
  const row = transitions.find((candidate) => candidate.from === from && candidate.to === to);
  const attributes = row?.rules[type];
  if (row === undefined || attributes === undefined) {
    throw new KernelError('EINVAL', `no transition from state ${from} to ${to}`);
  }
  checkMask(attributes, from, to, mask);
  return row.command;
}

function checkMask(attributes: AttributeRule, from: QpStateVerb, to: QpStateVerb, mask: number): void {
  const missing = attributes.required & ~mask;
  const surplus = mask & ~(attributes.required | attributes.optional | always);
  if (missing !== 0 || surplus !== 0) {
    throw new KernelError(
      'EINVAL',
      `state ${from} to ${to}: missing attributes 0x${missing.toString(16)}, surplus 0x${surplus.toString(16)}`,
    );
  }
}
