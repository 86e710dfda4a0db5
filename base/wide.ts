/**
 * A number that need not fit into 32 bits: an address, a key as the standards write it, a count of all bytes.
 *
 * This type marks a field that begins with 0 but will hold larger values; the build then makes room for it
 * (build/wide-fields.ts). Fields of picoseconds, whose names end in `Ps`, need no mark.
 */
export type Wide = number;
