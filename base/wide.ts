/**
 * A number that need not fit into 32 bits: an address, a key as the standards write it, a count of all bytes.
 *
 * A field that begins with 0 says by this type that more will come; the build then makes room for it (build/wide-fields.ts).
 * Fields of picoseconds, whose names end in `Ps`, need not say it.
 */
export type Wide = number;
