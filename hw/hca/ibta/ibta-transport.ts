/** The IBTA transport: over InfiniBand and, as RoCE, over Ethernet. */
import { PSN_MASK } from '../../../wire/index.ts';
import type { Transport } from '../transport/index.ts';
import { type IbtaBlocks, ibtaRoles, makeIbtaBlocks } from './ibta-blocks.ts';
import { type IbtaAttachment, type IbtaParts, makeIbtaParts } from './ibta-parts.ts';
import { ibtaWires } from './ibta-wires.ts';

/** Both ends name a packet by its PSN, modulo this mask plus 1. */
export const packetNumberMask = PSN_MASK;

export const ibtaTransport = (attachment: IbtaAttachment): Transport<IbtaParts, IbtaBlocks> => ({
  makeParts: (site) => makeIbtaParts(attachment, site),
  makeBlocks: makeIbtaBlocks,
  rolesOf: ibtaRoles,
  wires: ibtaWires,
});
