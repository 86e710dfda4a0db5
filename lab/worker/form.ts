/** The worker of the closed form. */
import { expose } from 'comlink';
import type { LabForm } from '../protocol.ts';
import { estimate, parameters, profiles } from './closed-form.ts';

const form: LabForm = { estimate, parameters, profiles };

expose(form);
