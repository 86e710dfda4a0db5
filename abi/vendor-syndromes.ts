/**
 * Vendor syndromes: the byte of an error CQE with details beyond its status, which libibverbs returns as `vendor_err`.
 *
 * Public logs of cards of this family give three: 0x81 with exhausted retries (openucx/ucx issue 2973), 0x88 with a remote
 * access error (open-mpi/ompi issue 4529, of 136), 0xf9 with a flush (open-mpi/ompi issue 95, of 249). The others are
 * emulator-specific: for an access to local memory, 0x30 plus the number of the check that refused it, so that a program can
 * identify the check.
 */
import { CqeSyndrome } from './cqe.ts';

export const VendorSyndrome = {
  LOCAL_ACCESS: 0x30,
  BAD_KEY: 0x32,
  BAD_PD: 0x33,
  OUT_OF_BOUNDS: 0x34,
  MISSING_RIGHT: 0x35,
  BAD_PAGE: 0x36,
  REFUSED_PAGE: 0x37,
  LOCAL_LENGTH: 0x68,
  RECEIVE_LENGTH: 0x69,
  LOCAL_OPERATION: 0x70,
  WINDOW_BIND: 0x71,
  BAD_RESPONSE: 0x80,
  RETRIES_EXCEEDED: 0x81,
  RNR_RETRIES_EXCEEDED: 0x87,
  REMOTE_ACCESS: 0x88,
  REMOTE_OPERATION: 0x89,
  REMOTE_INVALID_REQUEST: 0x8a,
  FLUSHED: 0xf9,
} as const;

const bySyndrome: Readonly<Record<number, number>> = {
  [CqeSyndrome.LOCAL_QP_OP_ERR]: VendorSyndrome.LOCAL_OPERATION,
  [CqeSyndrome.WR_FLUSH_ERR]: VendorSyndrome.FLUSHED,
  [CqeSyndrome.MW_BIND_ERR]: VendorSyndrome.WINDOW_BIND,
  [CqeSyndrome.BAD_RESP_ERR]: VendorSyndrome.BAD_RESPONSE,
  [CqeSyndrome.REMOTE_INVAL_REQ_ERR]: VendorSyndrome.REMOTE_INVALID_REQUEST,
  [CqeSyndrome.REMOTE_ACCESS_ERR]: VendorSyndrome.REMOTE_ACCESS,
  [CqeSyndrome.REMOTE_OP_ERR]: VendorSyndrome.REMOTE_OPERATION,
  [CqeSyndrome.TRANSPORT_RETRY_EXC_ERR]: VendorSyndrome.RETRIES_EXCEEDED,
  [CqeSyndrome.RNR_RETRY_EXC_ERR]: VendorSyndrome.RNR_RETRIES_EXCEEDED,
};

/**
 * Vendor syndrome of an error CQE; 0 if the status says all.
 * @param refusal number of the check, from 2, that last refused a memory access of the QP; 0: none
 */
export function vendorSyndromeOf(syndrome: number, isSend: boolean, refusal: number): number {
  if (syndrome === CqeSyndrome.LOCAL_PROT_ERR) return VendorSyndrome.LOCAL_ACCESS + refusal;
  if (syndrome === CqeSyndrome.LOCAL_LENGTH_ERR)
    return isSend ? VendorSyndrome.LOCAL_LENGTH : VendorSyndrome.RECEIVE_LENGTH;
  return bySyndrome[syndrome] ?? 0;
}
