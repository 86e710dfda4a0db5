/** Interface of this room: see README.md. */
export { type Bottleneck, bottleneckOf } from './bottleneck.ts';
export type { Measured, ProgramCore, Resource, Turn } from './measured.ts';
export { bottleneckLines, bottleneckShort } from './words.ts';
