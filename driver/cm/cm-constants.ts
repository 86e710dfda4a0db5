/**
 * What rdma_cm of Linux puts into its messages and waits for. The protocol's codes of time are exponents: 4.096 µs × 2^code.
 * Source: Linux 6.1, drivers/infiniband/core/cma.c (CMA_CM_RESPONSE_TIMEOUT, CMA_MAX_CM_RETRIES, CMA_CM_MRA_SETTING).
 */

/** How long a peer's CM may take to answer. */
export const cmResponseTimeout = 20;
/** How often a REQ, REP or DREQ is repeated. */
export const cmMaxRetries = 15;
/** How much longer a peer is asked to wait by an MRA. */
export const mraServiceTimeout = 24;
/** What Linux calls a target that reports no acknowledgement delay of its own. */
export const targetAckDelay = 15;

/** Of a code, in picoseconds. IBTA vol 1, 12.7.20 and others. */
export const cmTimePs = (code: number): number => 4_096_000 * 2 ** code;
