/** Groups of the access rights of a key. */
import { RIGHT_REMOTE_ATOMIC, RIGHT_REMOTE_READ, RIGHT_REMOTE_WRITE } from '../memory/index.ts';

/** Rights by which a peer writes: the region must be writable locally (IBTA vol 1, 10.6.3.1). */
export const RIGHTS_TO_WRITE = RIGHT_REMOTE_WRITE | RIGHT_REMOTE_ATOMIC;
export const REMOTE_RIGHTS = RIGHTS_TO_WRITE | RIGHT_REMOTE_READ;
