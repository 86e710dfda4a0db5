/** Interface of this room: see README.md. */
export type { IbtaBlocks } from './ibta-blocks.ts';
export type { IbtaAttachment, IbtaParts } from './ibta-parts.ts';
export { ibtaTransport, packetNumberMask } from './ibta-transport.ts';
