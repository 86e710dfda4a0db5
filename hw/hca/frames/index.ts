/** Interface of this room: see README.md. */
export { FrameReceiver } from './frame-receiver.ts';
export { FrameTransmitter } from './frame-transmitter.ts';
