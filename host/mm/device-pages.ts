/**
 * Pages that a device reaches without a pin (on-demand paging): the process's own, with one reference each, so that a frame
 * outlives its mapping until the device has let it go. They do not count as locked; reclaim passes them over and says that
 * it wants them (notifier-list.ts).
 */

import type { AccessMode } from './access-mode.ts';
import type { AddressSpace } from './address-space.ts';
import { pageBytes } from './page.ts';
import { pageDirty } from './pages.ts';
import { ownFrame, type PinAccess } from './pins.ts';

/** The kernel on behalf of a device: it gives its core up while a page is read. */
const deviceAccess: AccessMode = { waitsInPlace: false, isUser: false };

/**
 * Makes the page of an address present for a device.
 * @param isAgain the answer was `later`
 * @returns its physical address, or as {@link ownFrame}
 */
export function holdForDevice(
  space: AddressSpace,
  address: number,
  access: PinAccess,
  isAgain = false,
): number | 'EFAULT' | 'ENOMEM' | 'later' {
  const frame = ownFrame(space, address - (address % pageBytes), access, deviceAccess, isAgain);
  if (typeof frame === 'string') return frame;
  space.mm.frames.reference(frame);
  space.mm.counts.devicePagesHeld++;
  return frame * pageBytes;
}

/** The device reaches the page no longer; one that it may have written is dirty. */
export function releaseFromDevice({ mm }: AddressSpace, physical: number, access: PinAccess): void {
  const frame = physical / pageBytes;
  if (access === 'write') mm.pages.set(frame, pageDirty);
  mm.counts.devicePagesReleased++;
  mm.release(frame);
}
