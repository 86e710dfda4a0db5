/**
 * The enumerations of libibverbs, name by name with their numbers, so that a program reads as it would in C.
 * Source: libibverbs verbs.h.
 */
import {
  AccessFlag,
  AsyncEventType,
  GidTypeVerb,
  LinkLayerVerb,
  MtuVerb,
  MwType,
  NodeTypeVerb,
  OpenFlag,
  PortStateVerb,
  QpAttrMask,
  QpStateVerb,
  QpTypeVerb,
  SrqAttrMask,
  SrqTypeVerb,
  TransportVerb,
} from '../driver/index.ts';

export const {
  IBV_QPS_RESET,
  IBV_QPS_INIT,
  IBV_QPS_RTR,
  IBV_QPS_RTS,
  IBV_QPS_SQD,
  IBV_QPS_SQE,
  IBV_QPS_ERR,
} = QpStateVerb;
export const { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV } = QpTypeVerb;
export const { IBV_SRQT_BASIC, IBV_SRQT_XRC } = SrqTypeVerb;
export const { O_CREAT, O_EXCL } = OpenFlag;
export const { IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096 } = MtuVerb;
export const {
  IBV_ACCESS_LOCAL_WRITE,
  IBV_ACCESS_REMOTE_WRITE,
  IBV_ACCESS_REMOTE_READ,
  IBV_ACCESS_REMOTE_ATOMIC,
  IBV_ACCESS_MW_BIND,
  IBV_ACCESS_ZERO_BASED,
  IBV_ACCESS_ON_DEMAND,
} = AccessFlag;
export const { IBV_MW_TYPE_1, IBV_MW_TYPE_2 } = MwType;
export const { IBV_LINK_LAYER_UNSPECIFIED, IBV_LINK_LAYER_INFINIBAND, IBV_LINK_LAYER_ETHERNET } =
  LinkLayerVerb;
export const { IBV_NODE_CA, IBV_NODE_RNIC } = NodeTypeVerb;
export const { IBV_TRANSPORT_IB, IBV_TRANSPORT_IWARP } = TransportVerb;
export const { IBV_GID_TYPE_IB, IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_ROCE_V2 } = GidTypeVerb;
export const {
  IBV_QP_STATE,
  IBV_QP_CUR_STATE,
  IBV_QP_EN_SQD_ASYNC_NOTIFY,
  IBV_QP_ACCESS_FLAGS,
  IBV_QP_PKEY_INDEX,
  IBV_QP_PORT,
  IBV_QP_QKEY,
  IBV_QP_AV,
  IBV_QP_PATH_MTU,
  IBV_QP_TIMEOUT,
  IBV_QP_RETRY_CNT,
  IBV_QP_RNR_RETRY,
  IBV_QP_RQ_PSN,
  IBV_QP_MAX_QP_RD_ATOMIC,
  IBV_QP_ALT_PATH,
  IBV_QP_MIN_RNR_TIMER,
  IBV_QP_SQ_PSN,
  IBV_QP_MAX_DEST_RD_ATOMIC,
  IBV_QP_PATH_MIG_STATE,
  IBV_QP_CAP,
  IBV_QP_DEST_QPN,
} = QpAttrMask;
export const { IBV_SRQ_MAX_WR, IBV_SRQ_LIMIT } = SrqAttrMask;
export const {
  IBV_EVENT_CQ_ERR,
  IBV_EVENT_QP_FATAL,
  IBV_EVENT_QP_REQ_ERR,
  IBV_EVENT_QP_ACCESS_ERR,
  IBV_EVENT_COMM_EST,
  IBV_EVENT_SQ_DRAINED,
  IBV_EVENT_DEVICE_FATAL,
  IBV_EVENT_PORT_ACTIVE,
  IBV_EVENT_PORT_ERR,
  IBV_EVENT_LID_CHANGE,
  IBV_EVENT_PKEY_CHANGE,
  IBV_EVENT_SM_CHANGE,
  IBV_EVENT_SRQ_ERR,
  IBV_EVENT_SRQ_LIMIT_REACHED,
  IBV_EVENT_QP_LAST_WQE_REACHED,
  IBV_EVENT_CLIENT_REREGISTER,
  IBV_EVENT_GID_CHANGE,
} = AsyncEventType;
export const { IBV_PORT_NOP, IBV_PORT_DOWN, IBV_PORT_INIT, IBV_PORT_ARMED, IBV_PORT_ACTIVE } = PortStateVerb;

/** Work request opcodes (ibv_wr_opcode); masked atomics use the numbers of the kernel's verbs, since libibverbs has none. */
export const WrOpcode = {
  IBV_WR_RDMA_WRITE: 0,
  IBV_WR_RDMA_WRITE_WITH_IMM: 1,
  IBV_WR_SEND: 2,
  IBV_WR_SEND_WITH_IMM: 3,
  IBV_WR_RDMA_READ: 4,
  IBV_WR_ATOMIC_CMP_AND_SWP: 5,
  IBV_WR_ATOMIC_FETCH_AND_ADD: 6,
  IBV_WR_LOCAL_INV: 7,
  IBV_WR_BIND_MW: 8,
  IBV_WR_SEND_WITH_INV: 9,
  IBV_WR_MASKED_ATOMIC_CMP_AND_SWP: 12,
  IBV_WR_MASKED_ATOMIC_FETCH_AND_ADD: 13,
} as const;
export type WrOpcode = (typeof WrOpcode)[keyof typeof WrOpcode];
export const {
  IBV_WR_RDMA_WRITE,
  IBV_WR_RDMA_WRITE_WITH_IMM,
  IBV_WR_SEND,
  IBV_WR_SEND_WITH_IMM,
  IBV_WR_RDMA_READ,
  IBV_WR_ATOMIC_CMP_AND_SWP,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_LOCAL_INV,
  IBV_WR_BIND_MW,
  IBV_WR_SEND_WITH_INV,
  IBV_WR_MASKED_ATOMIC_CMP_AND_SWP,
  IBV_WR_MASKED_ATOMIC_FETCH_AND_ADD,
} = WrOpcode;

/** Flags of a send work request (ibv_send_flags). */
export const SendFlag = {
  IBV_SEND_FENCE: 1,
  IBV_SEND_SIGNALED: 2,
  IBV_SEND_SOLICITED: 4,
  IBV_SEND_INLINE: 8,
} as const;
export const { IBV_SEND_FENCE, IBV_SEND_SIGNALED, IBV_SEND_SOLICITED, IBV_SEND_INLINE } = SendFlag;

/** Results of a work request (ibv_wc_status). */
export const WcStatus = {
  IBV_WC_SUCCESS: 0,
  IBV_WC_LOC_LEN_ERR: 1,
  IBV_WC_LOC_QP_OP_ERR: 2,
  IBV_WC_LOC_EEC_OP_ERR: 3,
  IBV_WC_LOC_PROT_ERR: 4,
  IBV_WC_WR_FLUSH_ERR: 5,
  IBV_WC_MW_BIND_ERR: 6,
  IBV_WC_BAD_RESP_ERR: 7,
  IBV_WC_LOC_ACCESS_ERR: 8,
  IBV_WC_REM_INV_REQ_ERR: 9,
  IBV_WC_REM_ACCESS_ERR: 10,
  IBV_WC_REM_OP_ERR: 11,
  IBV_WC_RETRY_EXC_ERR: 12,
  IBV_WC_RNR_RETRY_EXC_ERR: 13,
  IBV_WC_REM_ABORT_ERR: 16,
  IBV_WC_FATAL_ERR: 19,
  IBV_WC_GENERAL_ERR: 21,
} as const;
export type WcStatus = (typeof WcStatus)[keyof typeof WcStatus];
export const {
  IBV_WC_SUCCESS,
  IBV_WC_LOC_LEN_ERR,
  IBV_WC_LOC_QP_OP_ERR,
  IBV_WC_LOC_PROT_ERR,
  IBV_WC_WR_FLUSH_ERR,
  IBV_WC_MW_BIND_ERR,
  IBV_WC_BAD_RESP_ERR,
  IBV_WC_LOC_ACCESS_ERR,
  IBV_WC_REM_INV_REQ_ERR,
  IBV_WC_REM_ACCESS_ERR,
  IBV_WC_REM_OP_ERR,
  IBV_WC_RETRY_EXC_ERR,
  IBV_WC_RNR_RETRY_EXC_ERR,
  IBV_WC_REM_ABORT_ERR,
  IBV_WC_GENERAL_ERR,
} = WcStatus;

/** Kinds of completed requests (ibv_wc_opcode; for masked atomics ib_wc_opcode). */
export const WcOpcode = {
  IBV_WC_SEND: 0,
  IBV_WC_RDMA_WRITE: 1,
  IBV_WC_RDMA_READ: 2,
  IBV_WC_COMP_SWAP: 3,
  IBV_WC_FETCH_ADD: 4,
  IBV_WC_BIND_MW: 5,
  IBV_WC_LOCAL_INV: 6,
  IBV_WC_MASKED_COMP_SWAP: 9,
  IBV_WC_MASKED_FETCH_ADD: 10,
  IBV_WC_RECV: 128,
  IBV_WC_RECV_RDMA_WITH_IMM: 129,
} as const;
export type WcOpcode = (typeof WcOpcode)[keyof typeof WcOpcode];
export const {
  IBV_WC_SEND,
  IBV_WC_RDMA_WRITE,
  IBV_WC_RDMA_READ,
  IBV_WC_COMP_SWAP,
  IBV_WC_FETCH_ADD,
  IBV_WC_BIND_MW,
  IBV_WC_LOCAL_INV,
  IBV_WC_MASKED_COMP_SWAP,
  IBV_WC_MASKED_FETCH_ADD,
  IBV_WC_RECV,
  IBV_WC_RECV_RDMA_WITH_IMM,
} = WcOpcode;

/** Flags of a work completion (ibv_wc_flags). */
/** Fields that the completions of an extended CQ can have (ibv_create_cq_wc_flags). */
export const WcExFlag = {
  IBV_WC_EX_WITH_BYTE_LEN: 1 << 0,
  IBV_WC_EX_WITH_IMM: 1 << 1,
  IBV_WC_EX_WITH_QP_NUM: 1 << 2,
  IBV_WC_EX_WITH_SRC_QP: 1 << 3,
  IBV_WC_EX_WITH_SLID: 1 << 4,
  IBV_WC_EX_WITH_SL: 1 << 5,
  IBV_WC_EX_WITH_DLID_PATH_BITS: 1 << 6,
  IBV_WC_EX_WITH_COMPLETION_TIMESTAMP: 1 << 7,
} as const;
export const {
  IBV_WC_EX_WITH_BYTE_LEN,
  IBV_WC_EX_WITH_IMM,
  IBV_WC_EX_WITH_QP_NUM,
  IBV_WC_EX_WITH_SRC_QP,
  IBV_WC_EX_WITH_SLID,
  IBV_WC_EX_WITH_SL,
  IBV_WC_EX_WITH_DLID_PATH_BITS,
  IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
} = WcExFlag;
/** All but the timestamp. */
export const IBV_WC_STANDARD_FLAGS = 0x7f;
export const IBV_CQ_INIT_ATTR_MASK_FLAGS = 1;
export const IBV_CREATE_CQ_ATTR_SINGLE_THREADED = 1;

/** Supported flags of ibv_qp_create_flags. */
export const IBV_QP_CREATE_BLOCK_SELF_MCAST_LB = 2;

/** Changes of ibv_rereg_mr (ibv_rereg_mr_flags). */
export const ReregMrFlag = {
  IBV_REREG_MR_CHANGE_TRANSLATION: 1,
  IBV_REREG_MR_CHANGE_PD: 2,
  IBV_REREG_MR_CHANGE_ACCESS: 4,
} as const;
export const { IBV_REREG_MR_CHANGE_TRANSLATION, IBV_REREG_MR_CHANGE_PD, IBV_REREG_MR_CHANGE_ACCESS } =
  ReregMrFlag;

export const WcFlag = { IBV_WC_GRH: 1, IBV_WC_WITH_IMM: 2, IBV_WC_WITH_INV: 8 } as const;
export const { IBV_WC_GRH, IBV_WC_WITH_IMM, IBV_WC_WITH_INV } = WcFlag;

/** Values that queryRtValuesEx reads (ibv_values_mask). */
export const ValuesMask = { IBV_VALUES_MASK_RAW_CLOCK: 1 } as const;
export const { IBV_VALUES_MASK_RAW_CLOCK } = ValuesMask;

/** The status in words, as ibv_wc_status_str gives it. */
export function wcStatusStr(status: number): string {
  const found = Object.entries(WcStatus).find(([, code]) => code === status);
  return found === undefined ? `status ${status}` : found[0].slice('IBV_WC_'.length);
}
