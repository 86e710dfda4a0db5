/** Formats of contexts for specs of single blocks. */
import { QpContext } from '../connectx3/qp-context.ts';

export const infinibandQpContext = new QpContext({ frameBytesMax: 0, hasRoce: false });
