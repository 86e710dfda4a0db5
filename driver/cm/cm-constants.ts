/**
 * Values that rdma_cm of Linux puts into its messages, and its time limits. Time codes of the protocol are exponents: 4.096 µs
 * × 2^code. Source: Linux 6.1, drivers/infiniband/core/cma.c (CMA_CM_RESPONSE_TIMEOUT, CMA_MAX_CM_RETRIES, CMA_CM_MRA_SETTING).
 */

/** How long a peer's CM may take to answer. */
export const cmResponseTimeout = 20;
/** How often a REQ, REP or DREQ is repeated. */
export const cmMaxRetries = 15;
/** Extra time that an MRA asks the peer to wait. */
export const mraServiceTimeout = 24;
/** Acknowledgement delay that Linux assumes for a target that reports none. */
export const targetAckDelay = 15;

/** Converts a time code to picoseconds. IBTA vol 1, 12.7.20 and others. */
export const cmTimePs = (code: number): number => 4_096_000 * 2 ** code;
