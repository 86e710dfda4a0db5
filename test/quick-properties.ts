/**
 * For `npm run test:quick`: a property draws what it can in so much time, the rest is for `npm test`. Where a spec has a time limit of its
 * own, that one counts; what is drawn fails as ever.
 */
import fc from 'fast-check';

const drawingMs = 250;

fc.configureGlobal({ ...fc.readConfigureGlobal(), interruptAfterTimeLimit: drawingMs });
