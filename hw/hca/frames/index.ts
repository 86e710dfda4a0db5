/** Interface of this room: see README.md. */
export { tagOf } from './frame-headers.ts';
export { FrameReceiver } from './frame-receiver.ts';
export { FrameTransmitter } from './frame-transmitter.ts';
export { segmentPlacesOf } from './segment-headers.ts';
