// The public standard's own schema, as the SDK ships it. The SDK's client takes any answer as it is and
// forgives much in notifications, so every line is held against the schema here.
import { createRequire } from 'node:module';
import Ajv2020 from 'ajv/dist/2020.js';

const require = createRequire(import.meta.url);
const schema = require('@agentclientprotocol/sdk/schema/v1/schema.json');

// Number formats only say which width a number has; keywords with x- are for code generators.
const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true, discriminator: false });
ajv.addSchema(schema, 'acp');

const kinds = Object.entries(schema.$defs).filter(([, definition]) => definition['x-method']);

function definitionOf(method, side, ending) {
  const fits = ([name, d]) => d['x-method'] === method && d['x-side'] === side && name.endsWith(ending);
  return kinds.find(fits)?.[0];
}

/** What is wrong with a line of the agent, or nothing. `method` is the one that an answer belongs to. */
export function violation(message, method) {
  if (message.jsonrpc !== '2.0') return 'no jsonrpc version';
  if (message.error) return broken('Error', message.error);
  if ('result' in message) {
    const definition = definitionOf(method, 'agent', 'Response');
    return definition ? broken(definition, message.result) : undefined;
  }
  const ending = 'id' in message ? 'Request' : 'Notification';
  const definition = definitionOf(message.method, 'client', ending);
  if (definition) {
    const wrong = broken(definition, message.params);
    return wrong && (brokenUpdate(message.params?.update) ?? wrong);
  }
  // The standard leaves names with an underscore to everyone.
  return message.method.startsWith('_') ? undefined : `unknown method ${message.method}`;
}

/** Of a union the validator tells all that might have been meant; this tells what is wrong with what was. */
function brokenUpdate(update) {
  const variants = schema.$defs.SessionUpdate.oneOf;
  const kind = update?.sessionUpdate;
  const index = variants.findIndex((variant) => variant.properties.sessionUpdate.const === kind);
  return index < 0 ? `unknown update ${kind}` : broken(`SessionUpdate/oneOf/${index}`, update);
}

function broken(definition, value) {
  const validate = ajv.getSchema(`acp#/$defs/${definition}`);
  if (validate(value)) return undefined;
  const reasons = validate.errors.map(({ instancePath, message }) => `${instancePath || 'it'} ${message}`);
  return `${definition}: ${[...new Set(reasons)].join('; ')}`;
}
