//! Fields of structs that are missing.

use arrow_schema::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result as TheirResult};
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::expr::{Case, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::prelude::SessionContext;

/// Makes a field of a struct that is missing null. DataFusion gives whatever the column of the field has in that row.
#[derive(Debug)]
struct MissingStructs;

/// Registers the rule with a session.
pub(crate) fn register(context: &SessionContext) -> TheirResult<()> {
    context.state_ref().write().register_function_rewrite(std::sync::Arc::new(MissingStructs))
}

impl FunctionRewrite for MissingStructs {
    fn name(&self) -> &str {
        "fields of missing structs"
    }

    fn rewrite(&self, expr: Expr, schema: &DFSchema, _: &ConfigOptions) -> TheirResult<Transformed<Expr>> {
        let Expr::ScalarFunction(field) = &expr else { return Ok(Transformed::no(expr)) };
        if field.func.name() != "get_field" || field.args.is_empty() {
            return Ok(Transformed::no(expr));
        }
        // `a.b.c` is one call: a, and a.b, must be there.
        let mut present: Option<Expr> = None;
        for count in 1..field.args.len() {
            let parent = match &field.args[..count] {
                [one] => one.clone(),
                several => {
                    Expr::ScalarFunction(ScalarFunction::new_udf(field.func.clone(), several.to_vec()))
                }
            };
            if matches!(parent.get_type(schema)?, DataType::Struct(_)) && parent.nullable(schema)? {
                let is_there = parent.is_not_null();
                present = Some(match present {
                    Some(above) => above.and(is_there),
                    None => is_there,
                });
            }
        }
        let Some(present) = present else { return Ok(Transformed::no(expr)) };
        let case = Case::new(None, vec![(Box::new(present), Box::new(expr))], None);
        Ok(Transformed::yes(Expr::Case(case)))
    }
}
