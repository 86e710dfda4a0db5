/**
 * Zero as V8 keeps floats.
 *
 * A field that begins as the small integer 0 and comes to hold picoseconds, or whatever needs more than 32 bits, changes its
 * representation, and its object its hidden class: what was compiled then checks the class of such an object at
 * every use, and of every field that leads to it. A field that begins with this zero stays what it is.
 */
export const FLOAT_ZERO = new Float64Array(1)[0]!;
