/** Page sizes of queues: contexts have log2 in units of 4 KiB. Source: interface sheet 5.1 to 5.5. */

const LOG_BYTES_MIN = 12;

/** log2 of the page size in bytes. */
export const logPageBytesOf = (logPageSize4k: number): number => LOG_BYTES_MIN + logPageSize4k;
/** The inverse. */
export const logPageSize4kOf = (logPageBytes: number): number => logPageBytes - LOG_BYTES_MIN;
export const pageBytesOf = (logPageSize4k: number): number => 2 ** logPageBytesOf(logPageSize4k);
